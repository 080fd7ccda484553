package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/xdp"
)

// What an agent changes in a network device outlives it. So it notes that in a file
// before, which it has locked as long as it lives, and starts a janitor: a process
// that waits for the lock, and then does what the file says. CleanDevices does the
// same where the janitor was killed, too.

// notesDir is where notes are. Like a device, it forgets when the machine restarts.
const notesDir = "/run/xwarp"

// changes are what a note says, of one device: what is in it besides, or how it was.
type changes struct {
	Flows *xdp.Flows `json:"flows,omitempty"`
	NAPI  *xdp.NAPI  `json:"napi,omitempty"`
	Netns uint64     `json:"netns"` // inode of the network namespace of the device
}

func (c *changes) device() string {
	if c.NAPI != nil {
		return c.NAPI.Device
	}
	return c.Flows.Device
}

// undo undoes the changes and returns what was done, for people.
func (c *changes) undo() (done string, err error) {
	if c.NAPI != nil {
		restored, err := c.NAPI.Restore()
		if restored {
			done = "set back napi_defer_hard_irqs and gro_flush_timeout of " + c.NAPI.Device
		}
		return done, err
	}
	found, err := c.Flows.Remove()
	if found > 0 {
		done = fmt.Sprintf("removed %d n-tuple filters of %s", found, c.Flows.Device)
	}
	return done, err
}

// note is one that we keep.
type note struct{ file *os.File }

// noteChanges writes down what is going to be changed, and starts the janitor.
func noteChanges(dir string, c changes) (*note, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if c.Netns, err = netnsInode(); err != nil {
		return nil, err
	}
	n, err := newNote(dir)
	if err != nil {
		return nil, err
	}
	if err = json.NewEncoder(n.file).Encode(c); err == nil {
		err = startJanitor(n.file.Name())
	}
	if err != nil {
		n.drop()
		return nil, fmt.Errorf("note of what to undo in %s: %w", c.device(), err)
	}
	return n, nil
}

// newNote makes an empty note that we have locked. Before we have, a process that
// cleans up may take it for one that was left behind: then there is another one.
func newNote(dir string) (*note, error) {
	for {
		file, err := os.CreateTemp(dir, "device-*.json")
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX); err == nil {
			err = unix.Fstat(int(file.Fd()), &st)
		}
		n := &note{file}
		switch {
		case err != nil:
			n.drop()
			return nil, err
		case st.Nlink > 0:
			return n, nil
		}
		n.leave()
	}
}

// drop removes a note of what was undone, and its janitor with it.
func (n *note) drop() {
	_ = os.Remove(n.file.Name()) // if it stays, the janitor finds nothing to do
	n.leave()
}

// leave lets the janitor do its work.
func (n *note) leave() { n.file.Close() }

func netnsInode() (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/thread-self/ns/net", &st)
	return st.Ino, os.NewSyscallError("stat of /proc/thread-self/ns/net", err)
}

func startJanitor(path string) error {
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"xwarp-device-janitor", AgentArg},
		Env: []string{config.EnvDeviceNote + "=" + path, "GOMAXPROCS=1"}, Dir: "/",
		// A session of its own: what ends the agent does not reach it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // no zombie
	return nil
}

// janitorMain waits until the agent that wrote a note is gone, and undoes what is
// left of it. It returns the exit status.
func janitorMain(path string) int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	file, err := os.Open(path)
	if err != nil {
		return 0 // it was undone already
	}
	defer file.Close()
	for {
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		_, err = obey(file)
	}
	if err != nil {
		return 1 // the note stays, for CleanDevices
	}
	return 0
}

// errElsewhere says that a note is about a device of another network namespace.
var errElsewhere = errors.New("the device is in another network namespace: run xinfo --clean there")

// obey does what a note says whose lock we have, removes it, and returns what was
// done.
func obey(file *os.File) (done string, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil || st.Nlink == 0 {
		return "", err // another process did it
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return "", err
	}
	var c changes
	// An unfinished note is of an agent that had not begun.
	if json.Unmarshal(text, &c) == nil && (c.NAPI != nil || c.Flows != nil) {
		ns, err := netnsInode()
		switch {
		case err != nil:
		case ns == c.Netns:
			done, err = c.undo()
		case netnsExists(c.Netns):
			err = errElsewhere
		} // else its devices are gone with it, and what was changed in them
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.device(), err)
		}
	}
	return done, os.Remove(file.Name())
}

// netnsExists reports whether there is a network namespace: some process is in it, or it
// is mounted.
func netnsExists(inode uint64) bool {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	if bytes.Contains(mounts, fmt.Appendf(nil, " net:[%d] ", inode)) {
		return true
	}
	paths, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	return slices.ContainsFunc(paths, func(path string) bool {
		var st unix.Stat_t
		return unix.Stat(path, &st) == nil && st.Ino == inode
	})
}

// CleanDevices undoes what agents have changed in network devices that were killed
// together with their janitors, in the network namespace of the calling thread. It
// returns what it did, for people, also together with an error.
func CleanDevices() (done []string, err error) { return cleanNotes(notesDir) }

func cleanNotes(dir string) (done []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "device-*.json"))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, path := range paths {
		what, err := cleanNote(path)
		if what != "" {
			done = append(done, what)
		}
		errs = append(errs, err)
	}
	return done, errors.Join(errs...)
}

func cleanNote(path string) (done string, err error) {
	file, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return "", err
	}
	defer file.Close()
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK): // its agent lives, or its janitor is at it
		return "", nil
	case err != nil:
		return "", fmt.Errorf("lock of %s: %w", path, err)
	}
	return obey(file)
}
