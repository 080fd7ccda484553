package pmi

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// job is the membership in a job of a launcher that speaks PMI.
type job struct {
	*conn
	protocol
	rank, size  int
	host, local int
	key         uint64
	stderr      io.Writer

	fence  sync.Mutex
	fences int // so far

	mu     sync.Mutex // guards what follows
	staged []boot.Value
	values []map[string]string // by rank
}

// protocol is what a launcher does for a job, in either version of PMI.
type protocol interface {
	// valueMax is the most bytes that a value may have.
	valueMax() int
	put(key, value string) error
	// barrier ends when all ranks have called it, or the launcher lets get wait
	// instead, until they have.
	barrier() error
	// get returns a value that a rank has put before the last barrier, and an
	// error that wraps errRefused when there is none.
	get(rank int, key string) (string, error)
	// mapping returns the value of mappingKey, or an error as get does.
	mapping() (string, error)
	abort(code int, why string) error
	finalize() error
}

// Join returns the job that a launcher which speaks PMI started this process
// for, a boot.Watched, or boot.ErrNoLauncher. PMI carries no reason for an
// abort: Abort writes it to stderr.
func Join(stderr io.Writer) (boot.Job, error) {
	p, err := placeFromEnv()
	if err != nil {
		return nil, err
	}
	j, err := join(p, stderr)
	if err != nil {
		p.socket.Close()
		return nil, err
	}
	return j, nil
}

func join(p place, stderr io.Writer) (*job, error) {
	version, err := p.negotiate()
	if err != nil {
		return nil, err
	}
	j := &job{conn: newConn(p.socket, p.lines, version), rank: p.rank, size: p.size, stderr: stderr, values: make([]map[string]string, p.size)}
	for i := range j.values {
		j.values[i] = map[string]string{}
	}
	if version == 2 {
		j.protocol, err = openV2(j.conn, p)
	} else {
		j.protocol, err = openV1(j.conn)
	}
	if err != nil {
		return nil, err
	}
	return j, j.meet()
}

// Keys under which ranks tell one another about themselves.
const (
	keyHost = "pmi host"
	keyJob  = "pmi job"
)

// meet agrees on the key of the job and finds out which ranks share a host.
func (j *job) meet() error {
	name, err := hostIdentity()
	if err != nil {
		return err
	}
	err = j.Put(keyHost, name)
	if j.rank == 0 && err == nil {
		err = j.Put(keyJob, strconv.FormatUint(boot.NewKey(), 16))
	}
	if err == nil {
		err = j.Fence()
	}
	if err != nil {
		return err
	}
	key, _ := j.Get(0, keyJob)
	if j.key, err = strconv.ParseUint(key, 16, 64); err != nil {
		return fmt.Errorf("pmi: key of the job: %w; start all ranks from the same build", err)
	}
	hosts, err := j.mapped()
	if err != nil {
		return err
	}
	if hosts == nil {
		hosts = j.hostsByName()
	}
	j.host = hosts[j.rank]
	for _, h := range hosts[:j.rank] {
		if h == j.host {
			j.local++
		}
	}
	return nil
}

// hostIdentity returns a name that two processes have in common only if they
// share a host: machines may have the same name, and containers on a machine
// the same kernel.
func hostIdentity() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("pmi: %w", err)
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it, the name is all there is
	return name + " " + strings.TrimSpace(string(boot)), nil
}

// mapped asks the launcher which ranks share a host. It returns nil when the
// launcher does not know.
func (j *job) mapped() ([]int, error) {
	value, err := j.mapping()
	if errors.Is(err, errRefused) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	hosts, err := parseMapping(value, j.size)
	if err != nil {
		return nil, nil //nolint:nilerr // names serve as well
	}
	return hosts, nil
}

// hostsByName numbers the hosts in the order of their first ranks.
func (j *job) hostsByName() []int {
	numbers := map[string]int{}
	hosts := make([]int, j.size)
	for rank := range hosts {
		name, _ := j.Get(rank, keyHost)
		n, ok := numbers[name]
		if !ok {
			n = len(numbers)
			numbers[name] = n
		}
		hosts[rank] = n
	}
	return hosts
}

func (j *job) Rank() int                   { return j.rank }
func (j *job) Size() int                   { return j.size }
func (j *job) Host() (host, localRank int) { return j.host, j.local }
func (j *job) Key() uint64                 { return j.key }

func (j *job) Put(key, value string) error {
	if key == "" {
		return errors.New("pmi: a value needs a key")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.staged = append(j.staged, boot.Value{Rank: j.rank, Key: key, Value: []byte(value)})
	return nil
}

func (j *job) Get(rank int, key string) (string, bool) {
	if rank < 0 || rank >= j.size {
		return "", false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	value, ok := j.values[rank][key]
	return value, ok
}

func (j *job) Fence() error {
	j.fence.Lock()
	defer j.fence.Unlock()
	j.fences++
	j.mu.Lock()
	mine := encodeValues(j.staged)
	j.staged = nil
	j.mu.Unlock()
	for i, piece := range pieces(mine, j.valueMax()) {
		if err := j.put(j.pieceKey(j.rank, i), piece); err != nil {
			return err
		}
	}
	if err := j.barrier(); err != nil {
		return err
	}
	for rank := range j.size {
		if err := j.fetch(rank, mine); err != nil {
			return err
		}
	}
	return nil
}

// fetch gets what a rank has put before the present fence.
func (j *job) fetch(rank int, mine string) error {
	text := mine
	if rank != j.rank {
		var err error
		if text, err = j.getText(rank); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := decodeValues(text, j.values[rank]); err != nil {
		return fmt.Errorf("pmi: values of rank %d: %w", rank, err)
	}
	return nil
}

// A PartnerError says that a rank has not told what every rank of this library tells
// before anything else.
type PartnerError struct {
	Rank int
	Err  error // what the launcher said
}

func (e *PartnerError) Error() string {
	return fmt.Sprintf("pmi: rank %d runs another MPI library, or another version of this one: build all programs of a job with the same one (%v)", e.Rank, e.Err)
}

func (e *PartnerError) Unwrap() error { return e.Err }

func (j *job) getText(rank int) (string, error) {
	var text strings.Builder
	for i := 0; ; i++ {
		piece, err := j.get(rank, j.pieceKey(rank, i))
		if errors.Is(err, errRefused) && i == 0 && j.fences == 1 {
			return "", &PartnerError{rank, err}
		}
		if err != nil {
			return "", fmt.Errorf("values of rank %d: %w", rank, err)
		}
		if piece == "" {
			return "", fmt.Errorf("pmi: values of rank %d: an empty piece", rank)
		}
		text.WriteString(piece[1:])
		if piece[0] != pieceMore {
			return text.String(), nil
		}
	}
}

// pieceKey is where a rank puts a piece of its values before the present
// fence. It is new each time: launchers refuse to put a key twice.
func (j *job) pieceKey(rank, piece int) string {
	return fmt.Sprintf("xwarp-%d-%d-%d", j.fences, rank, piece)
}

// abortTimeout is how long Abort waits for the launcher to end this process,
// and abortNotice how long the launcher has to read why: hydra drops what it has
// not read yet.
const (
	abortTimeout = 10 * time.Second
	abortNotice  = 50 * time.Millisecond
)

// Abort ends the job. A launcher that does not care is not waited for for
// ever: the caller then ends at least this process.
func (j *job) Abort(code int, why string) {
	fmt.Fprintf(j.stderr, "rank %d aborts the job with code %d: %s\n", j.rank, code, why)
	time.Sleep(abortNotice)
	if j.abort(code, why) != nil {
		return
	}
	select {
	case <-j.lost: // usually this process is killed first
	case <-time.After(abortTimeout):
	}
}

func (j *job) Finalize() error { return j.finalize() }
