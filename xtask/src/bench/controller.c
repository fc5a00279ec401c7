/* Controller of the bench: returns the same 13 bytes as the page with which it is compared. */
#include "rocknet_controller.h"

static int32_t hello(rocknet_request *request, void *user)
{
    (void)user;
    rocknet_set_status(request, 200);
    rocknet_add_field(request, "Content-Type", "text/html; charset=utf-8");
    return rocknet_write(request, "Hello, world!", 13);
}

static const rocknet_controller controllers[] = {{"hello", hello, NULL, NULL, NULL}};
static const rocknet_library_table library = ROCKNET_LIBRARY(NULL, NULL, controllers);

ROCKNET_EXPORT const rocknet_library_table *rocknet_library(void)
{
    return &library;
}
