// Two controllers in C++: a greeting with a counter that all requests share, and an echo of the request body.
#include "rocknet_controller.h"

#include <atomic>
#include <exception>
#include <new>
#include <string>

namespace {

struct Application {
    std::atomic<unsigned long> greetings{0};
};

// Catches all exceptions, because no exception may leave a controller.
template <typename Work> int32_t answer(rocknet_request *request, Work work) noexcept
{
    try {
        rocknet_set_status(request, 200);
        rocknet_add_field(request, "Content-Type", "text/plain; charset=utf-8");
        const std::string body = work();
        return rocknet_write(request, body.data(), body.size());
    } catch (const std::exception &error) {
        rocknet_log(request, ROCKNET_ERROR, error.what());
        return -100;
    } catch (...) {
        return -100;
    }
}

int32_t init(const rocknet_server *, void **user) noexcept
{
    *user = new (std::nothrow) Application;
    return *user ? ROCKNET_OK : -1;
}

void drop(void *user) noexcept
{
    delete static_cast<Application *>(user);
}

int32_t hello(rocknet_request *request, void *user) noexcept
{
    return answer(request, [&] {
        const unsigned long number = ++static_cast<Application *>(user)->greetings;
        return "Hello from C++, number " + std::to_string(number) + "\n";
    });
}

int32_t echo(rocknet_request *request, void *) noexcept
{
    return answer(request, [&] {
        const rocknet_text content = rocknet_content(request);
        return std::string(content.data, content.size);
    });
}

const rocknet_controller controllers[] = {
    {"hello", hello, nullptr, nullptr, nullptr},
    {"echo", echo, nullptr, nullptr, nullptr},
};

const rocknet_library_table library = ROCKNET_LIBRARY(init, drop, controllers);

} // namespace

const rocknet_library_table *rocknet_library()
{
    return &library;
}
