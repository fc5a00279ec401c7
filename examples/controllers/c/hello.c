/* Two controllers in C: a greeting, and an echo of the request body. */
#include "rocknet_controller.h"

#include <stdio.h>

static int32_t hello(rocknet_request *request, void *user)
{
    rocknet_text method = rocknet_read(request, ROCKNET_METHOD);
    char line[128];
    (void)user;
    /* Texts have a size and do not end in NUL. */
    snprintf(line, sizeof(line), "Hello from C, to a %.*s\n", (int)method.size, method.data);
    rocknet_set_status(request, 200);
    rocknet_add_field(request, "Content-Type", "text/plain; charset=utf-8");
    rocknet_write_string(request, line);
    return ROCKNET_OK;
}

static int32_t echo(rocknet_request *request, void *user)
{
    rocknet_text content = rocknet_content(request);
    (void)user;
    rocknet_set_status(request, 200);
    rocknet_add_field(request, "Content-Type", "text/plain; charset=utf-8");
    rocknet_write(request, content.data, content.size);
    return ROCKNET_OK;
}

static const rocknet_controller controllers[] = {
    {"hello", hello, NULL, NULL, NULL},
    {"echo", echo, NULL, NULL, NULL},
};

static const rocknet_library_table library = ROCKNET_LIBRARY(NULL, NULL, controllers);

ROCKNET_EXPORT const rocknet_library_table *rocknet_library(void)
{
    return &library;
}
