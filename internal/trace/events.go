package trace

// ID says what an event is. IDs are not stable between versions: files have
// names in them.
type ID uint32

// Every event of the project. A new one needs its line here and in table.
const (
	EngineWork  ID = iota + 1 // a step that did something
	ParkBegin                 // the engine has nothing to do
	ParkEnd                   //
	Retransmit                // a packet was sent again
	PeerDead                  // a peer was given up
	PacketDrop                // a packet was refused
	SendPosted                // a send work request was posted
	SendDone                  // and completed
	RecvMatched               // a message found its receive
	QueueDepth                // a counter: how much waits
	idEnd
)

// kind is how an event is drawn.
type kind byte

// Phases of the Chrome trace format, which Perfetto reads.
const (
	instant kind = 'i'
	begin   kind = 'B'
	end     kind = 'E'
	counter kind = 'C'
)

// def describes an ID: its name, and those of its arguments, as many as it has.
type def struct {
	name string
	kind kind
	args []string
}

var table = [idEnd]def{
	EngineWork:  {"work", instant, []string{"items"}},
	ParkBegin:   {"park", begin, nil},
	ParkEnd:     {"park", end, nil},
	Retransmit:  {"retransmit", instant, []string{"peer", "seq", "bytes", "why"}},
	PeerDead:    {"peer dead", instant, []string{"peer", "silent_ms"}},
	PacketDrop:  {"drop", instant, []string{"peer", "seq", "bytes", "why"}},
	SendPosted:  {"send", instant, []string{"peer", "bytes", "opcode"}},
	SendDone:    {"send done", instant, []string{"peer", "bytes", "opcode", "status"}},
	RecvMatched: {"match", instant, []string{"peer", "bytes", "tag", "unexpected"}},
	QueueDepth:  {"queue", counter, []string{"send", "unexpected", "inflight"}},
}
