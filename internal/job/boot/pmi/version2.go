package pmi

import (
	"fmt"
	"strconv"
)

// version2 is a launcher that speaks version 2 of PMI.
type version2 struct {
	*conn
	job string // its name, which is that of the table
}

// openV2 introduces the process. The launcher may know better which rank it is.
func openV2(c *conn, p place) (*version2, error) {
	v := &version2{conn: c}
	m, err := v.call("fullinit", "pmijobid", p.jobID, "pmirank", strconv.Itoa(p.rank), "threaded", "FALSE")
	if err != nil {
		return nil, err
	}
	rank, err := m.number("rank", 0)
	if err == nil && rank != p.rank {
		err = fmt.Errorf("this is rank %d, and was rank %d before", rank, p.rank)
	}
	if err != nil {
		return nil, fmt.Errorf("pmi: launcher: %w", err)
	}
	m, err = v.call("job-getid")
	v.job = m.Get("jobid")
	return v, err
}

// call asks a question, which in this version names its answer.
func (v *version2) call(cmd string, keysAndValues ...string) (Message, error) {
	return v.ask(cmd+"-response", question(cmd, keysAndValues...))
}

// find asks for the value of a key, which may not be there.
func (v *version2) find(cmd string, keysAndValues ...string) (string, error) {
	m, err := v.call(cmd, keysAndValues...)
	if err == nil && m.Get("found") != "TRUE" {
		err = fmt.Errorf("pmi: %w %s %v: there is none", errRefused, cmd, keysAndValues)
	}
	return m.Get("value"), err
}

// valueMax leaves room for the end of a C string: the draft says 1024, and it is
// what hydra and Slurm have room for.
func (v *version2) valueMax() int { return maxValue - 1 }

func (v *version2) put(key, value string) error {
	_, err := v.call("kvs-put", "key", key, "value", value)
	return err
}

// barrier ends at once under hydra, which lets kvs-get wait.
func (v *version2) barrier() error {
	_, err := v.call("kvs-fence")
	return err
}

func (v *version2) get(rank int, key string) (string, error) {
	return v.find("kvs-get", "jobid", v.job, "srcid", strconv.Itoa(rank), "key", key)
}

func (v *version2) mapping() (string, error) {
	return v.find("info-getjobattr", "key", mappingKey, "wait", "FALSE")
}

// abort carries no exit status in this version.
func (v *version2) abort(_ int, why string) error {
	return v.send(question("abort", "isworld", "TRUE", "msg", why))
}

func (v *version2) finalize() error {
	_, err := v.call("finalize")
	return err
}
