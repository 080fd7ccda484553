package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

// asRecorded makes the test binary a rank that sends every kind of message there is.
const asRecorded = "as-recorded"

// everyMessage uses whatever sends messages: collectives of all forms on both kinds of
// communicators, those of neighbours, partitions, and what makes communicators, some
// of which get the contexts of others that were freed.
func everyMessage(p *mpi.Proc) error {
	g, err := split(p, (p.World().Size()+1)/2)
	if err != nil {
		return err
	}
	grid, err := p.World().CartCreate([]int{p.World().Size()}, []bool{true}, true)
	if err != nil {
		return err
	}
	s, err := p.SessionInit(nil, nil)
	if err != nil {
		return err
	}
	for _, f := range []form{blocking, nonblocking, persistent} {
		for _, n := range []int{1, 9000} {
			if err := errors.Join(suiteCommunicators(p), g.all(f, n), g.rooted(f, n), g.scattered(f, n), inGrid(grid, f, n), (oracle[int32]{p.World(), n, f}).all()); err != nil {
				return err
			}
			c, err := from(s, mpi.PsetWorld, "recorded")
			if err != nil {
				return err
			}
			d, err := g.Dup()
			if err != nil {
				return err
			}
			m, err := d.Merge(g.side == 1)
			if err != nil {
				return err
			}
			if err := errors.Join(works(c), works(m), d.Free(), m.Free(), c.Free(), manyAtOnce(p.World(), 300)); err != nil {
				return err
			}
		}
	}
	return errors.Join(s.Finalize(), exercise{seed: 5, messages: 300, maxLen: 300_000, tags: 4, wild: 0.3}.run(p))
}

// manyAtOnce has n collectives under way, which have nothing to do with one another.
func manyAtOnce(c *mpi.Comm, n int) error {
	var started []mpi.Request
	sums := make([][]int, n)
	for i := range sums {
		sums[i] = []int{i}
		r, err := mpi.Iallreduce(c, nil, sums[i], mpi.Sum)
		if err != nil {
			return err
		}
		if started = append(started, r); len(started) == 200 {
			if err := mpi.Waitall(started); err != nil {
				return err
			}
			started = started[:0]
		}
	}
	err := mpi.Waitall(started)
	for i, v := range sums {
		if v[0] != i*c.Size() {
			err = errors.Join(err, fmt.Errorf("sum %d is %d", i, v[0]))
		}
	}
	return err
}

// Every message is in the record of both ends, under the same name.
func TestRecord_everyMessage(t *testing.T) {
	for i, job := range []struct {
		name string
		c    launch.Config
	}{
		{"shared memory", launch.Config{Ranks: 5, Fabric: "udp"}},
		{"rd", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0"}}},
		{"rc, read", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=rc", "XWARP_RENDEZVOUS=read"}}},
		{"ud", launch.Config{Ranks: 3, Fabric: "udp", Env: []string{"XWARP_SHARED=0", "XWARP_TRANSPORT=ud"}}},
		{"threads", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{"XWARP_THREADS=multiple"}}},
		{"checked", launch.Config{Ranks: 4, Fabric: "udp", Env: []string{mpi.EnvCheck + "=1"}}},
		{"xdp", launch.Config{Ranks: 4, Fabric: "xdp", Testbed: 2}},
	} {
		if slow && i%2 != 0 {
			continue
		}
		t.Run(job.name, func(t *testing.T) {
			if job.c.Testbed > 0 {
				testenv.NeedRoot(t)
			}
			var all launch.Records
			c := launch.Config{
				Ranks: job.c.Ranks, Program: "/proc/self/exe", Args: []string{asRecorded},
				RecordEvents: 1 << 18, Report: func(r launch.Records) { all = r },
			}
			if _, errOut, err := launchJob(t, c, job.c); err != nil {
				t.Fatalf("%v: %s", err, errOut)
			}
			checkRecords(t, all)
		})
	}
}

// ended is a message as the rank at one end has it.
type ended struct {
	from, to int32
	context  uint32
	tag      int32
	number   uint64
	bytes    uint64
}

func checkRecords(t *testing.T, all launch.Records) {
	t.Helper()
	if len(all.Reports) != all.Ranks {
		t.Fatalf("%d reports of %d ranks", len(all.Reports), all.Ranks)
	}
	var total trace.Totals
	ends, hidden, selves := map[ended]int{}, 0, 0
	for _, r := range all.Reports {
		if r.Lost > 0 {
			t.Fatalf("%d events lost: give the record more room", r.Lost)
		}
		total.SentMessages += r.Totals.SentMessages
		total.SentBytes += r.Totals.SentBytes
		total.ReceivedMessages += r.Totals.ReceivedMessages
		total.ReceivedBytes += r.Totals.ReceivedBytes
		total.Eager += r.Totals.Eager + r.Totals.Rendezvous
		for _, e := range r.Events {
			m := ended{from: int32(r.Rank), to: e.Peer, context: e.Context, tag: e.Tag, number: e.Number, bytes: e.Bytes}
			switch e.Kind {
			case trace.MessageGot:
				m.from, m.to = m.to, m.from
				ends[m]--
			case trace.MessageSent:
				ends[m]++
				hidden += int(e.Context & 1)
				if m.from == m.to {
					selves++
				}
			}
			if (e.Kind == trace.MessageGot || e.Kind == trace.MessageSent) && e.Number == 0 {
				t.Fatalf("a message without number: %+v", e)
			}
		}
	}
	alone := 0
	for m, n := range ends {
		if n != 0 {
			if alone++; alone < 10 {
				t.Errorf("%+v: sent %+d times more than received", m, n)
			}
		}
	}
	if total.SentMessages != total.ReceivedMessages || total.SentBytes != total.ReceivedBytes {
		t.Errorf("sent %d messages of %d bytes, received %d of %d", total.SentMessages, total.SentBytes, total.ReceivedMessages, total.ReceivedBytes)
	}
	if total.SentMessages != total.Eager+uint64(selves) {
		t.Errorf("%d messages were sent, and %d were counted below, besides %d to the own rank", total.SentMessages, total.Eager, selves)
	}
	if hidden < 1000 {
		t.Errorf("only %d messages of collectives", hidden)
	}
}
