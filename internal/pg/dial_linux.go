package pg

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// giveUpUnacknowledged bounds how long sent data may remain unacknowledged; Linux otherwise retries for a quarter of an
// hour.
func giveUpUnacknowledged(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var err error
	set := func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unheard.Milliseconds()))
	}
	if e := c.Control(set); e != nil {
		return e
	}
	return err
}
