// Package config is what can be set of a rank from outside: a table of the variables of the
// environment, with the flags that mean the same, their values, defaults and documentation.
// Ranks, launchers and their agents read the environment with [Read]; help texts, manual
// pages and docs/CONFIG.md are made of [Groups].
package config

import (
	"fmt"
	"strings"
	"time"
)

//go:generate go test . -count=1 -run TestReference -write

// Settings is what the environment says. What is not set there has its default, but numbers
// of bytes and messages are 0: the default of these is for the program to set, or is measured.
type Settings struct {
	Fabric, Device, Slot, Faults, Algorithms  string // as whoever opens them reads them
	Transport, Bulk, Rendezvous, Threads, ABI string // one of the Words
	Eager, EagerIdle, EagerNear               int    // bytes; -1 for none
	Unexpected, Arena, Promote                int
	Shared, Calibrate, IPv6, BusyPoll, Secure bool
	Watching
	Times
	Ghosts
	Machine Machine
}

// Times are how long things may take.
type Times struct{ NetWait, PeerLost, DelayTarget time.Duration }

// Ghosts are what ghosts do: each is one of the Words.
type Ghosts struct{ GhostFailure, GhostBinding string }

// Watching is what looks at the calls of the program.
type Watching struct{ Stats, Check bool }

// Machine is how many ranks and processors the job has on this machine; 0 if nobody said.
type Machine struct{ Ranks, Cores int }

// Read reads the environment. Of a bad value the error names the variable, the value and what
// is wanted; the others are read all the same.
func Read(lookup func(string) (string, bool)) (s Settings, err error) {
	for _, g := range s.groups() {
		for _, v := range g.Vars {
			text, ok := lookup(v.Name)
			if !ok || v.set == nil {
				continue
			}
			if bad := v.Set(text); bad != nil && err == nil {
				err = fmt.Errorf("%s is %.32q: %w", v.Name, text, bad)
			}
		}
	}
	return s, err
}

// A Group is variables of a kind.
type Group struct {
	Title string
	Users bool // the variables are for them to set or read
	Vars  []Var
}

// A Var is a variable of the environment.
type Var struct {
	Name string
	Flag string // that means the same, as help texts have it: "--bulk WAY"; or ""
	Of   string // commands that have the flag
	By   string // who reads the variable
	Doc  string // what it sets; of a switch, what it means when it is not as by default
	value
}

// Groups returns all variables.
func Groups() []Group { return new(Settings).groups() }

// Find returns the variable with a name, which there must be.
func Find(name string) Var {
	for _, g := range Groups() {
		for _, v := range g.Vars {
			if v.Name == name {
				return v
			}
		}
	}
	panic("config: there is no variable " + name)
}

// Help returns what help texts say of the variable.
func (v Var) Help() string {
	text := v.Doc
	if len(v.words) > 0 {
		text += ": " + v.words.explained()
	}
	if v.Default != "" && !v.Switch() {
		text += " (default " + v.Default + ")"
	}
	return text
}

// Flags returns the names of the flag, without dashes.
func (v Var) Flags() (names []string) {
	for word := range strings.FieldsFuncSeq(v.Flag, func(r rune) bool { return r == ' ' || r == ',' }) {
		if strings.HasPrefix(word, "-") {
			names = append(names, strings.TrimLeft(word, "-"))
		}
	}
	return names
}
