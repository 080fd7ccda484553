package bench

import (
	"cmp"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// watch makes a control connection fail when the other machine has answered
// nothing for so long, whether this end waits for a message or for what it has
// sent to be acknowledged. It is the kernels that ask and answer: a process
// that does not get to run is not gone.
func watch(conn net.Conn, silence time.Duration) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil // a pipe of a test
	}
	silence = cmp.Or(silence, 30*time.Second)
	const asks = 5
	every := max(silence/(asks+1), time.Second) // TCP counts seconds
	err := tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every, Count: asks})
	if err != nil {
		return fmt.Errorf("keep-alive of the control connection: %w", err)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
	})
	if err == nil && set != nil {
		err = fmt.Errorf("TCP_USER_TIMEOUT of the control connection: %w", set)
	}
	return err
}
