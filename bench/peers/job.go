package peers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/xwarp/xwarp/bench"
)

// ready is what rank 0 says when all ranks have begun.
const ready = "ready\n"

// Job is a library that was started and waits for orders. Its methods are for
// one goroutine at a time.
type Job struct {
	// Library is what it is called, Carrier what its messages go over.
	Library, Carrier string

	orders     io.WriteCloser
	answers    *bufio.Reader
	complaints *bench.Tail
	signal     func(syscall.Signal) error // to its processes: none runs between orders; nil for ours, which sleep
	end        func() error
}

// Where says what hosts a job runs on, and with how many ranks.
type Where struct {
	Hosts, Ranks int
	bench.Way    // of ours
	// MTU is that of the devices in bytes.
	MTU int
	// Cores are processors that ranks are pinned to in turn. Default: none,
	// the scheduler decides.
	Cores []int
	// Crowded says that there are more ranks than processors.
	Crowded bool
}

// begin waits until all ranks have begun.
func (j *Job) begin() error {
	line, err := j.answers.ReadString('\n')
	if line != ready {
		return j.failure("did not start", err)
	}
	return nil
}

// Run runs a burst on all ranks. After an error the job can only be closed.
func (j *Job) Run(o Order) (_ bench.Point, err error) {
	if j.signal != nil {
		if err := j.signal(syscall.SIGCONT); err != nil {
			return bench.Point{}, j.failure("do not go on", err)
		}
		defer func() { err = errors.Join(err, j.signal(syscall.SIGSTOP)) }()
	}
	if _, err := io.WriteString(j.orders, o.line()); err != nil {
		return bench.Point{}, j.failure("ended", err)
	}
	line, err := j.answers.ReadString('\n')
	if err != nil {
		return bench.Point{}, j.failure("ended", err)
	}
	p, err := parseAnswer(line, o.Size)
	if err != nil {
		return bench.Point{}, fmt.Errorf("%s: %w", j.Library, err)
	}
	return p, nil
}

// Close ends the ranks and removes what they ran on.
func (j *Job) Close() error {
	_ = j.orders.Close() // the ranks may be gone
	return j.end()
}

func (j *Job) failure(what string, err error) error {
	return fmt.Errorf("the ranks of %s over %s %s: %w: %s", j.Library, j.Carrier, what, err, j.complaints)
}
