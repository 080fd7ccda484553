package shm

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// A sender stores a record and then loads whether the receiver sleeps; a receiver that goes to sleep
// stores that it does, and then looks for records. Where a core may load before its store has come to the others,
// each may find nothing new, and the receiver sleeps beside a record. A fence between store and load,
// at both ends, rules that out, but in the sender each record then waits until the receiver's core
// has let go of its lines, which for 1 KiB takes as long as the copy. So the receiver, before it sleeps
// for long, has the cores of all senders execute a fence, which is what membarrier(2) does, and
// senders have none of their own (writer.late). Both must agree: the receiver's answer to the
// handshake says that it does so, and the sender has been made known to the kernel for that.
//
// It takes 0.2 us if no sender runs, and else an interrupt of each core that one runs on, which on a virtual
// machine took 20 us. That is too much for short sleeps: see Channels.Doze.

// Commands of membarrier(2), since Linux 4.16.
const (
	globalExpedited         = 1 << 1
	registerGlobalExpedited = 1 << 2
)

func membarrier(command uintptr) bool {
	_, _, e := unix.Syscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return e == 0
}

// fence makes all stores of registered processes visible to the loads that follow, and has what they
// load from now on be no older than the caller's stores. false means that it does neither.
func fence() bool { return membarrier(globalExpedited) }

// fencing reports whether fence is of use in this process.
var fencing = sync.OnceValue(func() bool { return mem.Unfenced && fence() })

// register lets fence concern this process, and reports whether it does. The first call waits for the
// kernel for 10 ms.
var register = sync.OnceValue(func() bool { return mem.Unfenced && membarrier(registerGlobalExpedited) })
