package pmi

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// A process that puts without end is refused at some time, and told why, in both
// versions and under whatever keys.
func TestSession_putsWithoutEnd(t *testing.T) {
	server := NewServer("j", 3, "")
	one, said := listen(server, 0)
	two, said2 := begin2(t, server, 1)
	value := strings.Repeat("v", 1000)
	for name, c := range map[string]struct {
		s    *Session
		said func() string
		line string
		no   string
	}{
		"version 1":          {one, said, "cmd=put kvsname=xwarp-j key=a%d value=" + value, "msg=the_table_of_the_job_takes_no_more:_a_rank_may_put_1024_KiB_in_all"},
		"version 2":          {two, said2, "cmd=kvs-put;key=b%d;value=" + value + ";", "errmsg=the table of the job takes no more: a rank may put 1024 KiB in all"},
		"version 2 and node": {two, said2, "cmd=info-putnodeattr;key=c%d;value=" + value + ";", "errmsg=the table of the job takes no more"},
	} {
		refused := 0
		for i := range 3000 {
			r, err := c.s.Handle(fmt.Appendf(nil, c.line, i))
			if err != nil {
				t.Fatal(err)
			}
			if answer := c.said(); strings.Contains(answer, strings.ReplaceAll(c.no, ";", ";;")) {
				refused++
				if r != nil {
					t.Fatalf("%s: it was refused, and put", name)
				}
			}
		}
		if refused < 2000 {
			t.Errorf("%s: %d of 3000 were refused", name, refused)
		}
	}
	if n := len(server.values) + len(server.node); n > 2*boot.MaxPut/len(value) {
		t.Errorf("%d values", n)
	}
}

// Neither do those that wait for what never comes.
func TestSession_waitsWithoutEnd(t *testing.T) {
	server := NewServer("j", 2, "")
	s, said := begin2(t, server, 0)
	refused := 0
	for i := range maxWaiters + 10 {
		if _, err := s.Handle(fmt.Appendf(nil, "cmd=info-getnodeattr;key=n%d;wait=TRUE;", i%3)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said(), "errmsg=too many wait;rc=1;") {
			refused++
		}
	}
	if refused != 10 {
		t.Errorf("%d were refused, not 10", refused)
	}
	if _, err := s.Handle([]byte("cmd=info-putnodeattr;key=n0;value=v;")); err != nil || server.waiters >= maxWaiters {
		t.Errorf("%d wait, %v", server.waiters, err)
	}
}

// What a process says while it is told that its fence is complete is none of the
// launcher's memory: the race detector looks.
func TestSession_fencesWhileItIsFenced(t *testing.T) {
	var all sync.WaitGroup
	s := NewServer("j", 2, "").NewSession(0, 0, func(string) {})
	all.Go(func() {
		for range 1000 {
			s.Fenced()
		}
	})
	for i := range 1000 {
		text := "cmd=kvs-fence;thrid=7;"
		if i == 0 {
			text = "cmd=init pmi_version=2 pmi_subversion=0"
		}
		if _, err := s.Handle([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
}

// The memory for a line is in proportion to it.
func TestParse_manyWords(t *testing.T) {
	line := []byte("cmd=put key=" + strings.Repeat("a ", boot.MaxRequest/2-10))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Parse(line); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 100*boot.MaxRequest {
		t.Errorf("%d bytes for a line of %d", n, len(line))
	}
}
