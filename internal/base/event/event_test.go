package event

import (
	"testing"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

func TestSet_readableWhileOneOfItsBellsIs(t *testing.T) {
	var bells [2]Bell
	for i := range bells {
		bell, err := NewBell()
		if err != nil {
			t.Fatal(err)
		}
		defer bell.Close()
		bells[i] = bell
	}
	set, err := NewSet(int(bells[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if err := set.Add(int(bells[1])); err != nil {
		t.Fatal(err)
	}
	for i, bell := range bells {
		if testenv.Readable(t, int(set)) {
			t.Errorf("before bell %d was rung the set is readable", i)
		}
		bell.Ring()
		bell.Ring()
		if !testenv.Readable(t, int(set)) {
			t.Errorf("bell %d was rung, and the set is not readable", i)
		}
		bell.Quiet()
	}
	bells[1].Ring()
	if err := set.Remove(int(bells[1])); err != nil {
		t.Fatal(err)
	}
	if testenv.Readable(t, int(set)) {
		t.Error("the set is readable because of a bell that was removed")
	}
}

func TestClose_twice(t *testing.T) {
	bell, err := NewBell()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second must not close a descriptor of someone else
		if err := bell.Close(); err != nil || bell >= 0 {
			t.Errorf("Close() = %v, leaves %d; want no error and a negative descriptor", err, bell)
		}
	}
	if _, err := NewSet(int(bell)); err == nil {
		t.Error("a set takes a closed bell")
	}
}
