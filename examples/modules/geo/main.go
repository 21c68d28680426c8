// Sends devices to the servers of their region: in the payload of a notification, `"host":"auto"` becomes the host of the region that
// the account's name begins with. Its configuration is regions and hosts, such as `eu=eu.example.org,us=us.example.org`.
package main

import (
	"bytes"
	"unsafe"
)

//go:wasmimport carillon:hooks@1 field
func field(number int32, at unsafe.Pointer, size int32) int32

//go:wasmimport carillon:hooks@1 output
func output(kind int32, at unsafe.Pointer, size int32)

//go:wasmimport carillon:hooks@1 count
func count(counter int32, by int32)

const (
	to      = 2
	payload = 4
	config  = 9

	outPayload = 3

	pass    = 0
	replace = 3
)

var (
	account = make([]byte, 3072)
	routes  = make([]byte, 4096)
	content = make([]byte, 64<<10)
	wanted  = []byte(`"host":"auto"`)
)

// A field, in the buffer; nothing if it is not there or does not fit.
func read(number int32, buffer []byte) []byte {
	size := field(number, unsafe.Pointer(&buffer[0]), int32(len(buffer)))
	if size < 0 || int(size) > len(buffer) {
		return nil
	}
	return buffer[:size]
}

// The host for an account, if its region is listed.
func host(account, routes []byte) []byte {
	region, _, found := bytes.Cut(account, []byte("-"))
	for found && len(routes) > 0 {
		var route []byte
		route, routes, _ = bytes.Cut(routes, []byte(","))
		if name, host, ok := bytes.Cut(route, []byte("=")); ok && bytes.Equal(name, region) {
			return host
		}
	}
	return nil
}

//go:wasmexport notification
func notification() int32 {
	text := read(payload, content)
	at := bytes.Index(text, wanted)
	if at < 0 {
		return pass
	}
	host := host(read(to, account), read(config, routes))
	if host == nil {
		count(0, 1)
		return pass
	}
	routed := append([]byte(nil), text[:at]...)
	routed = append(routed, `"host":"`...)
	routed = append(routed, host...)
	routed = append(routed, '"')
	routed = append(routed, text[at+len(wanted):]...)
	output(outPayload, unsafe.Pointer(&routed[0]), int32(len(routed)))
	count(1, 1)
	return replace
}

func main() {}
