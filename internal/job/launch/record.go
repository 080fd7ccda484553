package launch

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/trace"
)

// What ranks leave behind (package trace) lies in memory of their agent, which a
// rank shares with it as a descriptor. So the agent reads it when the rank is gone,
// however it went, and sends it to the controller; nothing is sent while the job
// runs.

// Records is what the ranks of a job have left behind.
type Records struct {
	Ranks   int             // of the job
	Reports []*trace.Report // by rank; without those of ranks that have left nothing
	Apart   bool            // the ranks are on several machines, with clocks of their own
}

// newRecord makes the memory of a record, whose size the rank cannot change.
func newRecord(events int) (*os.File, error) {
	fd, err := mem.Memfd("xwarp-record", trace.RecordSize(events))
	if err != nil {
		return nil, fmt.Errorf("memory for the record of a rank: %w", err)
	}
	return os.NewFile(uintptr(fd), "record"), nil
}

// giveRecord makes a record for the rank, and lets it inherit the descriptor.
func (r *rank) giveRecord(s *startOrder) (err error) {
	if !s.Record || r.number >= s.Size {
		return nil
	}
	if r.record, err = newRecord(s.RecordEvents); err != nil {
		return err
	}
	fd := bootFD + len(r.cmd.ExtraFiles)
	r.cmd.ExtraFiles = append(r.cmd.ExtraFiles, r.record)
	r.cmd.Env = append(r.cmd.Env, fmt.Sprintf("%s=%d", config.EnvRecordFD, fd))
	return nil
}

// sendRecord sends what the rank, which is gone, has left. Without the zeros at its
// end it is as long as what the rank has done.
func (r *rank) sendRecord(out *outbox) {
	if r.record == nil {
		return
	}
	defer r.record.Close()
	st, err := r.record.Stat()
	if err != nil {
		return
	}
	b := make([]byte, st.Size())            // what it was made with: see newRecord
	n, _ := r.record.ReadAt(b, 0)           // what cannot be read is missing in the end
	if r.queue != nil && r.queueSlot == 0 { // they are the device's: once is enough
		trace.AddLosses(b[:n], r.queue.losses())
	}
	for piece := range slices.Chunk(bytes.TrimRight(b[:n], "\x00"), maxData) {
		out.postData(report{Op: opRecord, Rank: r.number}, piece)
	}
}

// records reads what the ranks have left behind.
func (j *job) records() Records {
	all := Records{Ranks: j.plan.users(), Apart: j.plan.remote}
	size := trace.RecordSize(j.config.RecordEvents)
	for _, a := range j.plan.agents {
		for _, p := range a.ranks {
			data := j.left[p.Rank]
			if data == nil || len(data) > size {
				continue
			}
			r, err := trace.ReadRecord(append(data, make([]byte, size-len(data))...))
			if err != nil {
				continue // a program that has torn up its memory
			}
			r.Rank, r.Host = p.Rank, a.hostName
			r.Host = cmp.Or(r.Host, fmt.Sprintf("host %d", a.host))
			all.Reports = append(all.Reports, r)
		}
	}
	return all
}
