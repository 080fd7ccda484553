package main

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"

	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/job/launch"
)

// recording is what becomes of what the ranks leave behind.
type recording struct {
	stats       bool   // a table for people
	json, trace string // names of files, or ""; - is the standard output
	events      int    // for the trace, of each rank

	files map[string]io.WriteCloser
	err   error // the first that came up in writing
}

// traceEvents is how many events of a rank are kept where --trace-events says
// nothing: 3 MiB of memory.
const traceEvents = 1 << 16

func (r *recording) wanted() bool { return r.stats || r.json != "" || r.trace != "" }

// prepare makes the job leave records, and opens the files, so that one that cannot
// be written stops the job before it has begun.
func (r *recording) prepare(c *launch.Config, stdout, stderr io.Writer) error {
	if !r.wanted() {
		return nil
	}
	r.files = map[string]io.WriteCloser{}
	for _, name := range []string{r.json, r.trace} {
		if name == "" || r.files[name] != nil {
			continue
		}
		if name == "-" {
			r.files[name] = unclosed{stdout}
			continue
		}
		f, err := os.Create(name)
		if err != nil {
			return &launch.ConfigError{Problem: err.Error()}
		}
		r.files[name] = f
	}
	if r.trace != "" {
		c.RecordEvents = roundUp(r.events)
	}
	c.Report = func(all launch.Records) { r.err = r.write(all, stderr) }
	return nil
}

// roundUp returns the lowest power of two that is not below n.
func roundUp(n int) int { return 1 << bits.Len(uint(n-1)) }

// unclosed is a writer that is not ours to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// write writes everything that is wanted.
func (r *recording) write(all launch.Records, stderr io.Writer) error {
	var errs []error
	sum := trace.Summarize(all.Reports, all.Ranks)
	if r.stats {
		errs = append(errs, sum.WriteTable(stderr))
	}
	if r.json != "" {
		errs = append(errs, sum.WriteJSON(r.files[r.json]))
	}
	if r.trace != "" {
		var shift []int64
		if all.Apart {
			shift = trace.Shifts(all.Reports)
		}
		errs = append(errs, trace.WriteTimeline(r.files[r.trace], all.Reports, shift))
	}
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("writing what the ranks have left behind: %w", err)
	}
	return nil
}
