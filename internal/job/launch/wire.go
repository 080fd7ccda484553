package launch

import (
	"encoding/json"
	"fmt"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// wireVersion is the version of the protocol between controller and agent.
const wireVersion = 11

type op string

// What a controller orders.
const (
	opRoute  op = "route"  // find the device that the other hosts are reached through
	opStart  op = "start"  // start the ranks
	opFenced op = "fenced" // tell all ranks that the fence is complete
	opEnded  op = "ended"  // tell all ranks that some have ended
	opSignal op = "signal" // pass a signal on
	opStdin  op = "stdin"  // bytes for the ranks that read them; none at the end
	opState  op = "state"  // tell what the ranks do
	opKill   op = "kill"   // end the ranks: SIGTERM, and soon SIGKILL
	opFinish op = "finish" // all ranks of the job are gone: clean up and leave
)

// order is a line from the controller to an agent.
type order struct {
	Op     op           `json:"op"`
	Peers  []string     `json:"peers,omitempty"`  // route: some of the other hosts
	IPv6   bool         `json:"ipv6,omitempty"`   // route: the device needs such an address
	Device string       `json:"device,omitempty"` // route: the one to say something of, which need not be found
	Start  *startOrder  `json:"start,omitempty"`
	Values []boot.Value `json:"values,omitempty"` // fenced
	Ranks  []int        `json:"ranks,omitempty"`  // ended
	Signal int          `json:"signal,omitempty"` // signal
	Data   []byte       `json:"data,omitempty"`   // stdin
}

// startOrder is all that an agent needs to know.
type startOrder struct {
	Version int `json:"version"`
	Host    int `json:"host"`
	jobSize
	JobKey  uint64   `json:"job_key,string"`
	Secret  []byte   `json:"secret,omitempty"` // of a job that is encrypted
	Job     string   `json:"job"`
	Fabric  string   `json:"fabric"`
	Device  string   `json:"device"`
	Shared  bool     `json:"shared,omitempty"` // the ranks share a queue of the device
	Record  bool     `json:"record,omitempty"` // the ranks leave records behind
	User    string   `json:"user,omitempty"`   // that the ranks run as
	Dir     string   `json:"dir"`
	Apps    []App    `json:"apps"`
	Env     []string `json:"env"`
	StdinTo int      `json:"stdin_to,omitempty"` // as Config has it
	Merge   bool     `json:"merge,omitempty"`    // error output goes where the standard output does
	Mapping string   `json:"mapping"`            // which ranks share a host, as PMI has it
	Bind    Binding  `json:"bind"`
	Map     MapBy    `json:"map,omitempty"`
	// Processors are the ones that the ranks may use; all if there are none.
	Processors []int `json:"processors,omitempty"`
	// ReportBindings asks for notices of what ranks are bound to.
	ReportBindings bool `json:"report_bindings,omitempty"`
	// RecordEvents is how many events a record holds.
	RecordEvents int        `json:"record_events,omitempty"`
	Ranks        []rankPlan `json:"ranks"`

	Neighbors int `json:"neighbors"` // ranks on the machine

	Steered *steeredOrder `json:"steered,omitempty"` // the ranks have queues of their own; or nil
}

// jobSize says how many processes the job has on all hosts.
type jobSize struct {
	Size   int `json:"size"`             // ranks
	Ghosts int `json:"ghosts,omitempty"` // whose numbers are behind those of ranks
}

// What an agent reports.
const (
	opReady     op = "ready"      // the agent is there
	opDevice    op = "device"     // which device the other hosts are reached through
	opStarted   op = "started"    // a rank is there
	opFailed    op = "failed"     // the program could not be started
	opBoot      op = "boot"       // a request of a rank
	opOutput    op = "output"     // what a rank wrote
	opStdinRoom op = "stdin room" // a rank has taken the bytes
	opStdinShut op = "stdin shut" // a rank takes no more
	opStopped   op = "stopped"    // the ranks were stopped, as SIGTSTP asks
	opExit      op = "exit"       // a rank is gone
	opRecord    op = "record"     // what a rank that is gone has left behind, or a part of it
	opDoing     op = "doing"      // what a rank does
	opNotice    op = "notice"     // something that people should know
	opBye       op = "bye"        // everything is gone; the agent leaves
)

// report is a line from an agent to the controller, and the bytes that follow it.
type report struct {
	Op       op            `json:"op"`
	Version  int           `json:"version,omitempty"`   // ready
	Rank     int           `json:"rank,omitempty"`      // started, boot, output, stdin, exit
	PID      int           `json:"pid,omitempty"`       // started
	NotFound bool          `json:"not_found,omitempty"` // failed
	Why      string        `json:"why,omitempty"`       // failed; notice; boot without a request
	Request  *boot.Request `json:"request,omitempty"`   // boot
	PMI      bool          `json:"pmi,omitempty"`       // boot: the rank asked in PMI
	Found    *hostDevice   `json:"found,omitempty"`     // device
	Stderr   bool          `json:"stderr,omitempty"`    // output
	Length   int           `json:"length,omitempty"`    // output, record, doing: of Data
	Data     []byte        `json:"-"`                   // as it is, behind the line; valid until the next report
	Status   int           `json:"status,omitempty"`    // exit
	Signal   int           `json:"signal,omitempty"`    // exit
	Core     bool          `json:"core,omitempty"`      // exit
	Told     bool          `json:"told,omitempty"`      // exit: it was told to end, and did
}

// maxData is the most bytes that follow a report.
const maxData = 1 << 20

func parseOrder(line []byte) (order, error) {
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return order{}, fmt.Errorf("malformed order %.64q: %w", line, err)
	}
	switch o.Op {
	case opStart:
		if o.Start == nil || o.Start.Version != wireVersion {
			return order{}, fmt.Errorf("xrun on this host and where it was started are of different versions: install the same one")
		}
		return o, o.Start.check()
	case opSignal:
		if o.Signal < 1 || o.Signal > 64 {
			return order{}, fmt.Errorf("signal %d", o.Signal)
		}
	case opRoute:
		if len(o.Peers) == 0 && o.Device == "" {
			return order{}, fmt.Errorf("a route to nobody")
		}
	case opFenced, opEnded, opStdin, opState, opKill, opFinish:
	default:
		return order{}, fmt.Errorf("unknown order %.32q", string(o.Op))
	}
	return o, nil
}

func (s *startOrder) check() error {
	if len(s.Apps) == 0 || len(s.Ranks) == 0 || s.Size < 1 || s.Ghosts < 0 || s.Size > MaxRanks-s.Ghosts || s.Host < 0 || s.RecordEvents < 0 || s.RecordEvents > MaxRecordEvents {
		return fmt.Errorf("incomplete start order")
	}
	for _, r := range s.Ranks {
		if r.Rank < 0 || r.Rank >= s.Size+s.Ghosts || r.Local < 0 || r.Slot < -1 || r.App < 0 || r.App >= len(s.Apps) {
			return fmt.Errorf("start order for rank %d of %d", r.Rank, s.Size)
		}
	}
	return s.Steered.check(len(s.Ranks))
}

// parseReport reads a line from an agent of a job with size ranks.
func parseReport(line []byte, size int) (report, error) {
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		return report{}, fmt.Errorf("malformed report %.64q: %w", line, err)
	}
	if r.Rank < 0 || r.Rank >= size {
		return report{}, fmt.Errorf("report of rank %d of %d", r.Rank, size)
	}
	if r.Length < 0 || r.Length > maxData {
		return report{}, fmt.Errorf("report with %d bytes", r.Length)
	}
	switch r.Op {
	case opReady:
		if r.Version != wireVersion {
			return report{}, fmt.Errorf("xrun there and here are of different versions (%d and %d): install the same one", r.Version, wireVersion)
		}
	case opExit:
		if r.Status < 0 || r.Status > 255 || r.Signal < 0 || r.Signal > 64 {
			return report{}, fmt.Errorf("exit of rank %d with status %d, signal %d", r.Rank, r.Status, r.Signal)
		}
	case opDevice:
		if r.Found == nil || r.Found.Device == "" {
			return report{}, fmt.Errorf("a device without a name")
		}
	case opStarted, opFailed, opBoot, opOutput, opStdinRoom, opStdinShut, opStopped, opRecord, opDoing, opNotice, opBye:
	default:
		return report{}, fmt.Errorf("unknown report %.32q", string(r.Op))
	}
	return r, nil
}
