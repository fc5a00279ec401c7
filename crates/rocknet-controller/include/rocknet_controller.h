/*
 * rocknet_controller.h: what a shared library and RockNet know of each other.
 *
 * A library exports one function, rocknet_library, which gives a table: who it is, how it begins and ends, and its
 * controllers by name. A controller answers requests; it is put to work by a line of the configuration:
 *
 *     controller = "hello.so:hello"
 *
 * Both tables carry their sizes and the version of this header. The server loads libraries of its own major version,
 * and neither side reads beyond what the other says it has. So a library that is built today loads in later minor
 * versions, and one that is built with a later header loads in a server of today; the functions below tell a library
 * by ROCKNET_UNKNOWN, or by an absent text, that its server does not know what it asks for.
 *
 * A request is good until the call it is passed to returns, and for the thread of that call alone. What is read from it
 * lives as long. Nothing may leave these functions but their results: no exception, no longjmp.
 *
 * Copy this file; it needs nothing beside it. C99 or C++11, or anything that speaks C.
 */
#ifndef ROCKNET_CONTROLLER_H
#define ROCKNET_CONTROLLER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ROCKNET_ABI_MAJOR 1
#define ROCKNET_ABI_MINOR 0

#if defined(_WIN32)
#define ROCKNET_EXPORT __declspec(dllexport)
#else
#define ROCKNET_EXPORT __attribute__((visibility("default")))
#endif

/* In C++17 a function that may throw does not fit into the tables: the compiler sees to the rule above. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define ROCKNET_NOEXCEPT noexcept
#else
#define ROCKNET_NOEXCEPT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Results. Functions of the server give one of these. A controller gives ROCKNET_OK, ROCKNET_ENOUGH, or anything else
   for 500. */
enum {
    ROCKNET_OK = 0,
    /* From `answer` and `take`: no more content is wanted, and the answer begins now. */
    ROCKNET_ENOUGH = 1,
    /* The answer has begun already, or this call may not change it. */
    ROCKNET_LATE = -1,
    /* Not a status, name or value that can be sent. The answer becomes 500. */
    ROCKNET_INVALID = -2,
    /* More than the server takes. The answer becomes 500. */
    ROCKNET_TOO_MUCH = -3,
    /* A field that belongs to the connection (Content-Length, Connection and the like). The answer goes on without. */
    ROCKNET_NOT_YOURS = -4,
    /* This server is older than what was asked for. */
    ROCKNET_UNKNOWN = -5
};

/* What can be read of a request by rocknet_read. */
enum {
    ROCKNET_METHOD = 1,
    /* The path as it was sent, without the query. */
    ROCKNET_PATH = 2,
    /* The same with %XX decoded and `.`, `..` and `//` resolved: what routes are matched with. */
    ROCKNET_DECODED_PATH = 3,
    /* What follows the first `?`; absent where there is none. */
    ROCKNET_QUERY = 4,
    /* Path and query as they were sent, before any rule of the site. */
    ROCKNET_TARGET = 5,
    /* The host and port that the client asked for, as it was sent. */
    ROCKNET_HOST = 6,
    /* "HTTP/1.0", "HTTP/1.1", "HTTP/2.0" */
    ROCKNET_VERSION = 7,
    /* "https" or "http" */
    ROCKNET_SCHEME = 8,
    /* The address of the client; absent where it came by a Unix socket. */
    ROCKNET_CLIENT_ADDRESS = 9,
    ROCKNET_CLIENT_PORT = 10,
    /* Whom the client's certificate names: "CN=bob, O=Example"; absent where it has proved none. */
    ROCKNET_CLIENT_CERTIFICATE = 11,
    /* "TLSv1.2", "TLSv1.3"; absent in the clear. */
    ROCKNET_TLS_VERSION = 12,
    /* "TLS_AES_128_GCM_SHA256", as IANA names it; absent in the clear. */
    ROCKNET_TLS_CIPHER = 13,
    /* The name that the client asked for in its handshake (SNI); absent in the clear, and where it named none. */
    ROCKNET_SERVER_NAME = 14,
    /* The user whose password the server has verified (`auth`); absent where the route has no `auth`. */
    ROCKNET_USER = 15
};

/* Levels of lines in the server's log. */
enum { ROCKNET_ERROR = 1, ROCKNET_WARN = 2, ROCKNET_INFO = 3, ROCKNET_DEBUG = 4 };

/* Bytes that belong to somebody else. Absent: data is NULL. They do not end in NUL. */
typedef struct rocknet_text {
    const char *data;
    size_t size;
} rocknet_text;

typedef struct rocknet_request rocknet_request;

/* What the server offers. Use the functions further below, which look whether the server has what they need. */
typedef struct rocknet_server {
    /* Bytes of this table that the server has. */
    uint32_t size;
    uint16_t abi_major, abi_minor;

    rocknet_text (*read)(const rocknet_request *request, uint32_t what) ROCKNET_NOEXCEPT;
    rocknet_text (*field)(const rocknet_request *request, const char *name, size_t name_size, size_t nth) ROCKNET_NOEXCEPT;
    int32_t (*field_at)(const rocknet_request *request, size_t index, rocknet_text *name, rocknet_text *value) ROCKNET_NOEXCEPT;
    rocknet_text (*content)(const rocknet_request *request) ROCKNET_NOEXCEPT;

    int32_t (*set_status)(rocknet_request *request, uint32_t status) ROCKNET_NOEXCEPT;
    int32_t (*add_field)(rocknet_request *request, const char *name, size_t name_size, const char *value,
                         size_t value_size) ROCKNET_NOEXCEPT;
    int32_t (*write)(rocknet_request *request, const void *data, size_t size) ROCKNET_NOEXCEPT;

    void *(*state)(const rocknet_request *request) ROCKNET_NOEXCEPT;
    int32_t (*set_state)(rocknet_request *request, void *state) ROCKNET_NOEXCEPT;

    /* `request` may be NULL: in `init`, and wherever there is none. */
    void (*log)(const rocknet_request *request, uint32_t level, const char *text, size_t size) ROCKNET_NOEXCEPT;
} rocknet_server;

struct rocknet_request {
    const rocknet_server *server;
    /* More follows, which is the server's own. */
};

/*
 * One controller. `user` is what `init` of the library made. Calls for one request never overlap; calls for different
 * requests do, on several threads.
 */
typedef struct rocknet_controller {
    /* The name in the configuration: lib.so:name. Ends in NUL. */
    const char *name;
    /*
     * Answers. Without `take`, all content is there (rocknet_content), up to 1 MiB: requests with more are answered with
     * 413. What rocknet_write was given is the whole body, unless there is `give`.
     */
    int32_t (*answer)(rocknet_request *request, void *user) ROCKNET_NOEXCEPT;
    /*
     * May be NULL. Otherwise `answer` is called as soon as the head of the request is there, and then this for every
     * piece of content; `data` is NULL at the end of it. The answer begins behind the end; whatever was written before
     * is part of it.
     */
    int32_t (*take)(rocknet_request *request, void *user, const char *data, size_t size) ROCKNET_NOEXCEPT;
    /*
     * May be NULL. Otherwise this is asked for more of the body whenever there is room for it: it puts at most `size`
     * bytes into `room` and gives their number, 0 at the end, or something negative to have the answer cut.
     */
    int64_t (*give)(rocknet_request *request, void *user, char *room, size_t size) ROCKNET_NOEXCEPT;
    /*
     * May be NULL. Called once for every request whose state was set and is not NULL, when nothing else will be
     * called for it any more, however it ended: the client may have left long before. On any thread.
     */
    void (*end)(void *state, void *user) ROCKNET_NOEXCEPT;
} rocknet_controller;

/* What a library is. Lives as long as the library. */
typedef struct rocknet_library_table {
    /* sizeof(rocknet_library_table), ROCKNET_ABI_MAJOR, ROCKNET_ABI_MINOR */
    uint32_t size;
    uint16_t abi_major, abi_minor;
    /* May be NULL. Called once when the library is loaded. Anything but ROCKNET_OK refuses the configuration. */
    int32_t (*init)(const rocknet_server *server, void **user) ROCKNET_NOEXCEPT;
    /* May be NULL. Called once, when no request will come any more and the last has ended. On any thread. */
    void (*drop)(void *user) ROCKNET_NOEXCEPT;
    const rocknet_controller *controllers;
    /* sizeof(rocknet_controller), and how many there are. */
    uint32_t controller_size;
    uint32_t controller_count;
} rocknet_library_table;

/* What a library exports. `init` has not been called yet. */
ROCKNET_EXPORT const rocknet_library_table *rocknet_library(void);

/* The table of a library with an array of controllers. */
#define ROCKNET_LIBRARY(init, drop, controllers)                                                                       \
    {                                                                                                                  \
        sizeof(rocknet_library_table), ROCKNET_ABI_MAJOR, ROCKNET_ABI_MINOR, init, drop, controllers,                  \
            sizeof(rocknet_controller), sizeof(controllers) / sizeof((controllers)[0])                                 \
    }

/* Whether the server has this function. */
#define ROCKNET_HAS(server, function)                                                                                  \
    (offsetof(rocknet_server, function) + sizeof((server)->function) <= (server)->size)

/* Reads one of ROCKNET_METHOD and so on. */
static inline rocknet_text rocknet_read(const rocknet_request *request, uint32_t what)
{
    return request->server->read(request, what);
}

/* The value of a request field, whatever the case of its name; absent where there is none. */
static inline rocknet_text rocknet_field(const rocknet_request *request, const char *name)
{
    return request->server->field(request, name, strlen(name), 0);
}

/* The fields of the request one by one, in their order; ROCKNET_UNKNOWN behind the last. */
static inline int32_t rocknet_field_at(const rocknet_request *request, size_t index, rocknet_text *name,
                                       rocknet_text *value)
{
    return request->server->field_at(request, index, name, value);
}

/* All content of the request; empty for controllers with `take`. */
static inline rocknet_text rocknet_content(const rocknet_request *request)
{
    return request->server->content(request);
}

/* The status of the answer, from 200 to 599. An answer without is 500. */
static inline int32_t rocknet_set_status(rocknet_request *request, uint32_t status)
{
    return request->server->set_status(request, status);
}

/* Adds a field to the answer. */
static inline int32_t rocknet_add_field(rocknet_request *request, const char *name, const char *value)
{
    return request->server->add_field(request, name, strlen(name), value, strlen(value));
}

/* Adds to the body of the answer. */
static inline int32_t rocknet_write(rocknet_request *request, const void *data, size_t size)
{
    return request->server->write(request, data, size);
}

static inline int32_t rocknet_write_string(rocknet_request *request, const char *string)
{
    return request->server->write(request, string, strlen(string));
}

/* What the controller keeps from one call to the next of a request; see `end`. */
static inline void *rocknet_state(const rocknet_request *request)
{
    return request->server->state(request);
}

static inline int32_t rocknet_set_state(rocknet_request *request, void *state)
{
    return request->server->set_state(request, state);
}

/* A line in the server's log. */
static inline void rocknet_log(const rocknet_request *request, uint32_t level, const char *line)
{
    request->server->log(request, level, line, strlen(line));
}

#ifdef __cplusplus
}
#endif

#endif
