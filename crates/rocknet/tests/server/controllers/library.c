/* Library for the tests, with correct and misbehaving controllers. */
#define _DEFAULT_SOURCE /* usleep */
#include "rocknet_controller.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef WORD
#define WORD "one"
#endif

/* Appends a line, followed by WORD, to the file MARKS if it is defined. */
static void mark(const char *line)
{
#ifdef MARKS
    FILE *file = fopen(MARKS, "a");
    if (file) {
        fprintf(file, "%s %s\n", line, WORD);
        fclose(file);
    }
#else
    (void)line;
#endif
}

static int32_t init(const rocknet_server *server, void **user)
{
    *user = malloc(16);
    if (!*user || server->abi_major != ROCKNET_ABI_MAJOR || !ROCKNET_HAS(server, log))
        return -7;
    strcpy(*user, WORD);
    mark("init");
#ifdef CRASHES
    abort();
#endif
#ifdef FAILS
    return -8;
#endif
    return ROCKNET_OK;
}

static void drop(void *user)
{
    mark("drop");
    free(user);
}

static int32_t hello(rocknet_request *request, void *user)
{
    rocknet_set_status(request, 200);
    rocknet_add_field(request, "Content-Type", "text/plain");
    rocknet_write_string(request, "hello from ");
    rocknet_write_string(request, user);
    return ROCKNET_OK;
}

static void line(rocknet_request *request, const char *name, rocknet_text text)
{
    rocknet_write_string(request, name);
    if (text.data) {
        rocknet_write_string(request, "=");
        rocknet_write(request, text.data, text.size);
    }
    rocknet_write_string(request, "\n");
}

static int32_t mirror(rocknet_request *request, void *user)
{
    static const char *const names[] = {"method", "path", "decoded", "query", "target", "host", "version", "scheme",
                                        "address", "port", "certificate", "tls", "cipher", "name", "user", "beyond"};
    (void)user;
    rocknet_set_status(request, 200);
    /* Each value has the number of its name, starting at 1. No value has the number of the last name. */
    for (uint32_t what = 1; what <= sizeof(names) / sizeof(names[0]); what++)
        line(request, names[what - 1], rocknet_read(request, what));
    rocknet_text name, value;
    for (size_t index = 0; rocknet_field_at(request, index, &name, &value) == ROCKNET_OK; index++) {
        rocknet_write_string(request, "field ");
        rocknet_write(request, name.data, name.size);
        line(request, "", value);
    }
    line(request, "accept", rocknet_field(request, "ACCEPT"));
    line(request, "second", request->server->field(request, "accept", 6, 1));
    line(request, "none", rocknet_field(request, "X-None"));
    return ROCKNET_OK;
}

static int32_t echo(rocknet_request *request, void *user)
{
    rocknet_text content = rocknet_content(request);
    (void)user;
    rocknet_set_status(request, 200);
    rocknet_write(request, content.data, content.size);
    return ROCKNET_OK;
}

/* Misuses the interface in the way that the query names, and responds with the return value of the server. */
static int32_t misbehave(rocknet_request *request, void *user)
{
    rocknet_text query = rocknet_read(request, ROCKNET_QUERY);
    char what[32] = "", said[32];
    int32_t result = 1;
    memcpy(what, query.data, query.size < sizeof(what) ? query.size : sizeof(what) - 1);
    if (!strcmp(what, "nothing"))
        return ROCKNET_OK;
    rocknet_set_status(request, 200);
    if (!strcmp(what, "fail"))
        return -42;
    if (!strcmp(what, "status"))
        result = rocknet_set_status(request, 99);
    if (!strcmp(what, "early"))
        result = rocknet_set_status(request, 101);
    if (!strcmp(what, "line"))
        result = rocknet_add_field(request, "X-A", "1\r\nX-Evil: 2");
    if (!strcmp(what, "nul"))
        result = request->server->add_field(request, "X-A", 3, "1\0002", 3);
    if (!strcmp(what, "name"))
        result = rocknet_add_field(request, "X A", "1");
    if (!strcmp(what, "null"))
        result = request->server->add_field(request, NULL, 5, "1", 1);
    if (!strcmp(what, "length"))
        result = rocknet_add_field(request, "content-length", "100000");
    if (!strcmp(what, "negative"))
        result = request->server->write(request, "x", (size_t)-1);
    if (!strcmp(what, "giant")) {
        char *giant = malloc(70000);
        memset(giant, 'x', 69999);
        giant[69999] = 0;
        result = rocknet_add_field(request, "X-A", giant);
        free(giant);
    }
    if (!strcmp(what, "body")) {
        char *giant = malloc(1 << 20);
        memset(giant, 'x', 1 << 20);
        for (int piece = 0; piece < 17; piece++)
            result = rocknet_write(request, giant, 1 << 20);
        free(giant);
    }
    if (!strcmp(what, "lines")) {
        for (int number = 0; number < 1000; number++)
            rocknet_log(request, ROCKNET_WARN, "a line");
        result = 0;
    }
    (void)user;
    snprintf(said, sizeof(said), "said %d", (int)result);
    rocknet_write_string(request, said);
    return ROCKNET_OK;
}

/* Records the call, waits until a file exists, and removes the file. */
static void wait_for(const char *path)
{
    struct stat there;
    mark("waits");
    while (stat(path, &there) != 0)
        usleep(1000);
    unlink(path);
}

/* Ends its process in the way that the query names, or reports a property of it. */
static int32_t die(rocknet_request *request, void *user)
{
    rocknet_text query = rocknet_read(request, ROCKNET_QUERY);
    char what[256] = "", text[64];
    (void)user;
    if (query.data)
        memcpy(what, query.data, query.size < sizeof(what) ? query.size : sizeof(what) - 1);
    if (!strcmp(what, "abort"))
        abort();
    if (!strcmp(what, "segfault")) {
        char *volatile nowhere = NULL;
        *nowhere = 1;
    }
    if (!strcmp(what, "kill"))
        raise(SIGKILL);
    if (!strcmp(what, "exit"))
        exit(0);
    if (!strcmp(what, "loop"))
        for (volatile int goes_on = 1; goes_on;)
            ;
    if (!strcmp(what, "print")) {
        fprintf(stderr, "printed for a request\n");
        rocknet_log(request, ROCKNET_WARN, "logged for a request");
    }
    if (!strncmp(what, "wait=", 5))
        wait_for(what + 5);
    rocknet_set_status(request, 200);
    snprintf(text, sizeof(text), "%ld %ld", (long)getpid(), (long)getppid());
    return rocknet_write_string(request, text);
}

static int32_t missing(rocknet_request *request, void *user)
{
    (void)user;
    return rocknet_set_status(request, 404);
}

/* Reads a request body of any length, and responds with its length. */
struct count {
    size_t bytes, pieces;
};

static int32_t count_begin(rocknet_request *request, void *user)
{
    (void)user;
    if (rocknet_field(request, "X-Refuse").data) {
        rocknet_set_status(request, 403);
        return ROCKNET_ENOUGH;
    }
    return rocknet_set_state(request, calloc(1, sizeof(struct count)));
}

static int32_t count_take(rocknet_request *request, void *user, const char *data, size_t size)
{
    struct count *count = rocknet_state(request);
    char text[64];
    (void)user;
    if (data) {
        count->bytes += size;
        count->pieces++;
        return data[size - 1] == '!' ? -3 : ROCKNET_OK;
    }
    snprintf(text, sizeof(text), "%zu bytes in %s", count->bytes, count->pieces > 1 ? "pieces" : "one");
    rocknet_set_status(request, 200);
    return rocknet_write_string(request, text);
}

/* Sends the number of bytes in the query, 1,000 at a time. With -1 it fails, and with -2 it reports too many bytes. */
static int32_t give_begin(rocknet_request *request, void *user)
{
    long *left = malloc(sizeof(long));
    rocknet_text query = rocknet_read(request, ROCKNET_QUERY);
    char digits[16] = "";
    (void)user;
    /* Texts are not NUL-terminated. */
    memcpy(digits, query.data, query.size < sizeof(digits) ? query.size : sizeof(digits) - 1);
    *left = strtol(digits, NULL, 10);
    rocknet_set_status(request, 200);
    rocknet_write_string(request, "begin:");
    return rocknet_set_state(request, left);
}

static int64_t give_more(rocknet_request *request, void *user, char *room, size_t size)
{
    long *left = rocknet_state(request);
    size_t given = *left < 1000 ? (size_t)(*left < 0 ? 0 : *left) : 1000;
    (void)user;
    if (rocknet_set_status(request, 500) != ROCKNET_LATE || rocknet_write_string(request, "late") != ROCKNET_LATE)
        return -1;
    if (*left == -1)
        return -9;
    if (*left == -2)
        return (int64_t)size + 1;
    memset(room, 'g', given);
    *left -= (long)given;
    return (int64_t)given;
}

static void ended(void *state, void *user)
{
    (void)user;
    mark("end");
    free(state);
}

static const rocknet_controller controllers[] = {
    {"hello", hello, NULL, NULL, NULL},
    {"mirror", mirror, NULL, NULL, NULL},
    {"echo", echo, NULL, NULL, NULL},
    {"misbehave", misbehave, NULL, NULL, NULL},
    {"missing", missing, NULL, NULL, NULL},
    {"die", die, NULL, NULL, NULL},
    {"count", count_begin, count_take, NULL, ended},
    {"give", give_begin, NULL, give_more, ended},
};

#ifndef VERSION
#define VERSION ROCKNET_ABI_MAJOR
#endif
#ifndef SIZE
#define SIZE sizeof(rocknet_library_table)
#endif
#ifndef NAME
#define NAME rocknet_library
#endif

/* A library of a later minor version: both tables have further fields after those of the current version. */
struct later_controller {
    rocknet_controller known;
    void *more[2];
};
struct later_table {
    rocknet_library_table known;
    void *more[3];
};
static const struct later_controller later_controllers[] = {
    {{"hello", hello, NULL, NULL, NULL}, {(void *)-1, (void *)-1}},
    {{"echo", echo, NULL, NULL, NULL}, {(void *)-1, (void *)-1}},
};
static const struct later_table later = {
    {sizeof(struct later_table), ROCKNET_ABI_MAJOR, ROCKNET_ABI_MINOR + 7, init, drop,
     (const rocknet_controller *)later_controllers, sizeof(struct later_controller), 2},
    {(void *)-1, (void *)-1, (void *)-1},
};

static const rocknet_library_table table = {
    SIZE, VERSION, ROCKNET_ABI_MINOR, init, drop, controllers, sizeof(controllers[0]),
    sizeof(controllers) / sizeof(controllers[0]),
};

ROCKNET_EXPORT const rocknet_library_table *NAME(void)
{
#ifdef LATER
    (void)table;
    return &later.known;
#else
    (void)later;
    return &table;
#endif
}
