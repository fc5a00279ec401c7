/*
 * rocknet_controller.h: ABI between RockNet and controllers in shared libraries.
 *
 * A library exports one function, rocknet_library, which returns a table: its version, its init and drop functions,
 * and its controllers by name. A controller responds to requests of the routes that name it in the configuration:
 *
 *     controller = "hello.so:hello"
 *
 * Both tables state their sizes and the version of this header. The server loads libraries of its own major version,
 * and neither side reads beyond the stated size. A library that is built today therefore loads in later minor
 * versions, and a library that is built with a later header loads in a server of today. If the server does not support
 * a property or function, the library gets an absent text or ROCKNET_UNKNOWN.
 *
 * A request is valid until the call that it was passed to returns, and only on the thread of that call. The same is
 * true of everything that is read from it. No exception and no longjmp may leave a function of the library.
 *
 * This file has no dependencies but the C library, so it can be copied. It needs C99 or C++11.
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

/* In C++17 the compiler rejects a function that may throw, which enforces the rule above. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define ROCKNET_NOEXCEPT noexcept
#else
#define ROCKNET_NOEXCEPT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Results. Functions of the server return one of these. A controller returns ROCKNET_OK or ROCKNET_ENOUGH; any other
   value makes the response 500. */
enum {
    ROCKNET_OK = 0,
    /* Returned by `answer` and `take`: the controller needs no more of the request body, and the response begins. */
    ROCKNET_ENOUGH = 1,
    /* The response has begun already, or this call must not change it. */
    ROCKNET_LATE = -1,
    /* The status, name or value cannot be sent. The response becomes 500. */
    ROCKNET_INVALID = -2,
    /* A limit of the server is exceeded. The response becomes 500. */
    ROCKNET_TOO_MUCH = -3,
    /* The server sets this field itself (Date), or it belongs to the connection (Content-Length, Connection and
       similar). The response continues without it. */
    ROCKNET_NOT_YOURS = -4,
    /* The server is too old to support the function or property, or no header field has this index. */
    ROCKNET_UNKNOWN = -5
};

/* Properties of a request, for rocknet_read. */
enum {
    ROCKNET_METHOD = 1,
    /* Percent-encoded path without the query, as the client sent it or a rewrite rule has changed it. */
    ROCKNET_PATH = 2,
    /* Path that routes are matched with: %XX is decoded, and `.`, `..` and `//` are resolved. */
    ROCKNET_DECODED_PATH = 3,
    /* Query, which follows the first `?`; absent without one. A rewrite rule may have changed it. */
    ROCKNET_QUERY = 4,
    /* Request target as the client sent it, before any rule of the site: usually path and query. */
    ROCKNET_TARGET = 5,
    /* Host and port of the request as the client sent them. */
    ROCKNET_HOST = 6,
    /* "HTTP/1.0", "HTTP/1.1", "HTTP/2.0", "HTTP/3.0" */
    ROCKNET_VERSION = 7,
    /* "https" or "http" */
    ROCKNET_SCHEME = 8,
    /* IP address of the client; absent for a Unix socket. */
    ROCKNET_CLIENT_ADDRESS = 9,
    /* Port of the client in decimal digits; absent if it is not known, and for a Unix socket. */
    ROCKNET_CLIENT_PORT = 10,
    /* Subject of the certificate that the client authenticated with, "CN=bob, O=Example"; absent without one. */
    ROCKNET_CLIENT_CERTIFICATE = 11,
    /* "TLSv1.2", "TLSv1.3"; absent without TLS. */
    ROCKNET_TLS_VERSION = 12,
    /* IANA name of the cipher suite, "TLS_AES_128_GCM_SHA256"; absent without TLS. */
    ROCKNET_TLS_CIPHER = 13,
    /* Server name of the TLS handshake (SNI); absent without TLS and without a name. */
    ROCKNET_SERVER_NAME = 14,
    /* User that the server authenticated (`auth`): by a password, a client certificate, an authorization service or a
     * login provider. Absent if no user is known. */
    ROCKNET_USER = 15
};

/* Levels of log lines. */
enum { ROCKNET_ERROR = 1, ROCKNET_WARN = 2, ROCKNET_INFO = 3, ROCKNET_DEBUG = 4 };

/* Bytes that are owned elsewhere. They do not end in NUL. An absent text has NULL for its data. */
typedef struct rocknet_text {
    const char *data;
    size_t size;
} rocknet_text;

typedef struct rocknet_request rocknet_request;

/* Functions of the server. Use the wrappers below. Check functions of later minor versions with ROCKNET_HAS. */
typedef struct rocknet_server {
    /* Size of the server's table in bytes. */
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

    /* `request` may be NULL, as in `init`. */
    void (*log)(const rocknet_request *request, uint32_t level, const char *text, size_t size) ROCKNET_NOEXCEPT;
} rocknet_server;

struct rocknet_request {
    const rocknet_server *server;
    /* Private fields of the server follow. */
};

/*
 * Controller. `user` is the pointer that `init` of the library stored. Calls for one request never overlap; calls for
 * different requests overlap on several threads.
 */
typedef struct rocknet_controller {
    /* Name in the configuration (lib.so:name), which ends in NUL. */
    const char *name;
    /*
     * Responds to a request. Without `take`, the whole request body is available (rocknet_content), up to 1 MiB;
     * requests with a larger one get 413. Without `give`, the bytes from rocknet_write are the whole response body.
     */
    int32_t (*answer)(rocknet_request *request, void *user) ROCKNET_NOEXCEPT;
    /*
     * May be NULL. Otherwise `answer` is called when the request head has arrived, and then `take` for every piece of
     * the request body; `data` is NULL at its end. The response begins after the end of the request body. It includes
     * everything written before.
     */
    int32_t (*take)(rocknet_request *request, void *user, const char *data, size_t size) ROCKNET_NOEXCEPT;
    /*
     * May be NULL. Otherwise `give` is called whenever more of the response body can be sent. It writes at most `size`
     * bytes into `room` and returns their number, 0 at the end, or a negative value to abort the response.
     */
    int64_t (*give)(rocknet_request *request, void *user, char *room, size_t size) ROCKNET_NOEXCEPT;
    /*
     * May be NULL. Called once for every request whose state is not NULL, after all other calls for the request,
     * however it ended; the client may have disconnected long before. The call can come on any thread.
     */
    void (*end)(void *state, void *user) ROCKNET_NOEXCEPT;
} rocknet_controller;

/* Table of a library. It must exist as long as the library. */
typedef struct rocknet_library_table {
    /* sizeof(rocknet_library_table), ROCKNET_ABI_MAJOR, ROCKNET_ABI_MINOR */
    uint32_t size;
    uint16_t abi_major, abi_minor;
    /* May be NULL. Called once when the library is loaded. Any result but ROCKNET_OK rejects the configuration. */
    int32_t (*init)(const rocknet_server *server, void **user) ROCKNET_NOEXCEPT;
    /* May be NULL. Called once, on any thread, after the last request has ended. */
    void (*drop)(void *user) ROCKNET_NOEXCEPT;
    const rocknet_controller *controllers;
    /* sizeof(rocknet_controller), and the number of controllers. */
    uint32_t controller_size;
    uint32_t controller_count;
} rocknet_library_table;

/* Exported by the library: returns its table. Called before `init`. */
ROCKNET_EXPORT const rocknet_library_table *rocknet_library(void);

/* Initializer for the table of a library. `controllers` is an array, not a pointer; `init` and `drop` may be NULL. */
#define ROCKNET_LIBRARY(init, drop, controllers)                                                                       \
    {                                                                                                                  \
        sizeof(rocknet_library_table), ROCKNET_ABI_MAJOR, ROCKNET_ABI_MINOR, init, drop, controllers,                  \
            sizeof(rocknet_controller), sizeof(controllers) / sizeof((controllers)[0])                                 \
    }

/* True if the server has this function. */
#define ROCKNET_HAS(server, function)                                                                                  \
    (offsetof(rocknet_server, function) + sizeof((server)->function) <= (server)->size)

/* Returns a property, such as ROCKNET_METHOD; absent if the request does not have it or the server does not know it. */
static inline rocknet_text rocknet_read(const rocknet_request *request, uint32_t what)
{
    return request->server->read(request, what);
}

/* Returns the value of the first header field of this name in the request, ignoring the case of the name; absent if
   the request has no such field. */
static inline rocknet_text rocknet_field(const rocknet_request *request, const char *name)
{
    return request->server->field(request, name, strlen(name), 0);
}

/* Stores name and value of the header field at `index`, in the order of the request. Returns ROCKNET_UNKNOWN after the
   last one. */
static inline int32_t rocknet_field_at(const rocknet_request *request, size_t index, rocknet_text *name,
                                       rocknet_text *value)
{
    return request->server->field_at(request, index, name, value);
}

/* Returns the request body; empty for controllers with `take`. */
static inline rocknet_text rocknet_content(const rocknet_request *request)
{
    return request->server->content(request);
}

/* Sets the status of the response, from 200 to 599. A response without status becomes 500. */
static inline int32_t rocknet_set_status(rocknet_request *request, uint32_t status)
{
    return request->server->set_status(request, status);
}

/* Adds a header field to the response. */
static inline int32_t rocknet_add_field(rocknet_request *request, const char *name, const char *value)
{
    return request->server->add_field(request, name, strlen(name), value, strlen(value));
}

/* Appends bytes to the response body. */
static inline int32_t rocknet_write(rocknet_request *request, const void *data, size_t size)
{
    return request->server->write(request, data, size);
}

/* Appends a string that ends in NUL to the response body. */
static inline int32_t rocknet_write_string(rocknet_request *request, const char *string)
{
    return request->server->write(request, string, strlen(string));
}

/* Returns the state that the controller keeps for a request between calls; see `end`. */
static inline void *rocknet_state(const rocknet_request *request)
{
    return request->server->state(request);
}

/* Sets the state of a request. */
static inline int32_t rocknet_set_state(rocknet_request *request, void *state)
{
    return request->server->set_state(request, state);
}

/* Writes a line to the log of the server. */
static inline void rocknet_log(const rocknet_request *request, uint32_t level, const char *line)
{
    request->server->log(request, level, line, strlen(line));
}

#ifdef __cplusplus
}
#endif

#endif
