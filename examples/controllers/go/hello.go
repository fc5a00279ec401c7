// Two controllers in Go: a greeting, and an echo of the request body. Go can export functions to C, but has no function
// pointers that C can call. So the tables are in table.c.
package main

// #cgo CFLAGS: -I${SRCDIR}/../../../crates/rocknet-controller/include
// #include "rocknet_controller.h"
// #include <stdlib.h>
import "C"

import "unsafe"

//export goHello
func goHello(request *C.rocknet_request, _ unsafe.Pointer) (code C.int32_t) {
	// A panic must not leave this function, because it would end the server.
	defer func() {
		if recover() != nil {
			code = -100
		}
	}()
	method := C.rocknet_read(request, C.ROCKNET_METHOD)
	return answer(request, "Hello from Go, to a "+C.GoStringN(method.data, C.int(method.size))+"\n")
}

//export goEcho
func goEcho(request *C.rocknet_request, _ unsafe.Pointer) (code C.int32_t) {
	defer func() {
		if recover() != nil {
			code = -100
		}
	}()
	content := C.rocknet_content(request)
	return answer(request, C.GoStringN(content.data, C.int(content.size)))
}

func answer(request *C.rocknet_request, body string) C.int32_t {
	name, value := C.CString("Content-Type"), C.CString("text/plain; charset=utf-8")
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(value))
	C.rocknet_set_status(request, 200)
	C.rocknet_add_field(request, name, value)
	if body == "" {
		return C.ROCKNET_OK
	}
	return C.rocknet_write(request, unsafe.Pointer(unsafe.StringData(body)), C.size_t(len(body)))
}

func main() {}
