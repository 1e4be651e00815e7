package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// started is when the counter began, on the monotonic clock, which stands still while the guest is paused.
var started = time.Now()

// serve answers every request with one line. It does not use net/http, which would double the program's memory.
func serve() error {
	listener, err := net.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go answer(conn)
	}
}

func answer(conn net.Conn) {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return
	}
	request := bufio.NewScanner(conn)
	for request.Scan() && request.Text() != "" { // to the end of the request's header
	}
	body := state()
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
}

// state is the answer's body: "host NAME counter SECONDS up SECONDS".
func state() string {
	name, _ := os.Hostname()
	uptime, _ := os.ReadFile("/proc/uptime")
	up, _, _ := strings.Cut(string(uptime), " ")
	return fmt.Sprintf("host %s counter %d up %s\n", name, int(time.Since(started).Seconds()), up)
}
