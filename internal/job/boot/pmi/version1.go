package pmi

import (
	"errors"
	"fmt"
	"strconv"
)

// version1 is a launcher that speaks version 1 of PMI.
type version1 struct {
	*conn
	kvs string // the name of the table
	max int
}

// valueMin is the least that a value of the launcher's table has to hold.
const valueMin = 64

func openV1(c *conn) (*version1, error) {
	v := &version1{conn: c}
	m, err := v.ask("maxes", question("get_maxes"))
	if err != nil {
		return nil, err
	}
	if v.max, err = m.number("vallen_max", valueMin); err != nil {
		return nil, fmt.Errorf("pmi: %w", err)
	}
	v.max-- // launchers count the end of a C string
	m, err = v.ask("my_kvsname", question("get_my_kvsname"))
	if v.kvs = m.Get("kvsname"); err == nil && v.kvs == "" {
		err = errors.New("pmi: the launcher gives no name of a table")
	}
	rest := len("cmd=put kvsname= key= value=\n") + len(v.kvs) + maxKey
	v.max = min(v.max, max(valueMin, maxLine-rest)-1)
	return v, err
}

// maxLine is the room that Slurm and MPICH have for a line, whatever they say that
// the room for a value is. Slurm takes what is beyond for another line.
const maxLine = 1024

func (v *version1) valueMax() int { return v.max }

func (v *version1) put(key, value string) error {
	_, err := v.ask("put_result", question("put", "kvsname", v.kvs, "key", key, "value", value))
	return err
}

func (v *version1) barrier() error {
	_, err := v.ask("barrier_out", question("barrier_in"))
	return err
}

func (v *version1) get(_ int, key string) (string, error) {
	m, err := v.ask("get_result", question("get", "kvsname", v.kvs, "key", key))
	return m.Get("value"), err
}

func (v *version1) mapping() (string, error) { return v.get(0, mappingKey) }

func (v *version1) abort(code int, _ string) error {
	return v.send(question("abort", "exitcode", strconv.Itoa(code)))
}

func (v *version1) finalize() error {
	_, err := v.ask("finalize_ack", question("finalize"))
	return err
}
