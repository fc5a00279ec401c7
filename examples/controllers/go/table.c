/* Tables of the library. They call the functions in hello.go. */
#include "_cgo_export.h"

static int32_t hello(rocknet_request *request, void *user)
{
    return goHello(request, user);
}

static int32_t echo(rocknet_request *request, void *user)
{
    return goEcho(request, user);
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
