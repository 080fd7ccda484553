package pmi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/boot"
)

// The environment of a process that a PMI launcher started: a socket and the
// rank of the process, or else where the launcher listens and the number of the process
// among those that connect.
const (
	EnvFD    = boot.EnvPMIFD // descriptor of the socket to the launcher
	EnvRank  = "PMI_RANK"    // number of the rank
	EnvSize  = "PMI_SIZE"    // number of ranks
	EnvPort  = "PMI_PORT"    // HOST:PORT of the launcher
	EnvID    = "PMI_ID"      // what to say to it
	EnvJobID = "PMI_JOBID"   // name of the job, of launchers whose own version is 2
)

// EnvVersion says which version of PMI to speak: 1, 2 or auto. With auto, the
// default, it is 2 where there is a PMI_JOBID, as under Slurm, and else 1, in which
// hydra can be told the exit status of an abort; a launcher that refuses it and
// names the other one is asked for that.
const EnvVersion = config.EnvPMI

// place is the rank of a process and how it reaches its launcher.
type place struct {
	rank, size int
	jobID      string // what the launcher calls the job, or ""
	version    string // to speak: "1", "2", or "auto" or "" for the launcher's choice
	socket     io.ReadWriteCloser
	lines      *boot.LineReader
}

// placeFromEnv finds the launcher, or returns boot.ErrNoLauncher or a *ForeignError.
// Children of the process will not find it.
func placeFromEnv() (place, error) {
	_, inherited := os.LookupEnv(EnvFD)
	_, listens := os.LookupEnv(EnvPort)
	defer func() {
		_ = os.Unsetenv(EnvFD)
		_ = os.Unsetenv(EnvPort)
	}()
	var p place
	var err error
	switch {
	case inherited:
		p, err = inherit()
	case listens:
		p, err = dial()
	default:
		return place{}, alone(os.LookupEnv)
	}
	p.jobID, p.version = os.Getenv(EnvJobID), os.Getenv(EnvVersion)
	return p, err
}

// negotiate agrees with the launcher on a version of PMI, in lines of version 1.
func (p *place) negotiate() (version int, err error) {
	switch {
	case p.version == "1", p.version == "2":
		version = int(p.version[0] - '0')
	case p.version != "" && p.version != "auto":
		return 0, fmt.Errorf("pmi: %s is %.32q: want 1, 2 or auto", EnvVersion, p.version)
	case p.jobID != "":
		version = 2
	default:
		version = 1
	}
	answer, err := p.propose(version)
	other := 3 - version
	if errors.Is(err, errRefused) && (p.version == "" || p.version == "auto") && answer.Get("pmi_version") == strconv.Itoa(other) {
		version = other
		answer, err = p.propose(version)
	}
	if errors.Is(err, errRefused) {
		err = fmt.Errorf("%w: it speaks version %s.%s of PMI and was asked for %d; %s=1 or 2 asks for another",
			err, answer.Get("pmi_version"), answer.Get("pmi_subversion"), version, EnvVersion)
	}
	return version, err
}

// propose asks the launcher to speak a version of PMI.
func (p *place) propose(version int) (Message, error) {
	subversion := map[int]string{1: "1", 2: "0"}[version]
	hello, err := Append(nil, question("init", "pmi_version", strconv.Itoa(version), "pmi_subversion", subversion))
	if err != nil {
		return Message{}, err
	}
	if _, err := p.socket.Write(hello); err != nil {
		return Message{}, fmt.Errorf("%w (%w)", boot.ErrLost, err)
	}
	line, err := p.lines.Next()
	if err != nil {
		return Message{}, fmt.Errorf("%w (%w)", boot.ErrLost, err)
	}
	answer, err := Parse(line)
	if err != nil {
		return Message{}, fmt.Errorf("pmi: launcher: %w", err)
	}
	return answer, checkAnswer(answer, "init", "response_to_init")
}

func inherit() (p place, err error) {
	fd, err := envNumber(EnvFD, 0)
	if err != nil {
		return p, err
	}
	if p.rank, err = envNumber(EnvRank, 0); err != nil {
		return p, err
	}
	if p.size, err = envNumber(EnvSize, 1); err != nil {
		return p, err
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return p, fmt.Errorf("pmi: %s is %d, which is no descriptor here: was the program started through another one that closes it? (%w)%s", EnvFD, fd, err, remedy(EnvFD))
	}
	if mode, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || mode&unix.O_ACCMODE != unix.O_RDWR {
		return p, fmt.Errorf("pmi: %s is %d, which is no connection to a launcher here%s", EnvFD, fd, remedy(EnvFD))
	}
	p.socket = os.NewFile(uintptr(fd), "launcher")
	p.lines = boot.NewLineReader(p.socket)
	return p, p.check()
}

func dial() (p place, err error) {
	id, err := number(EnvID, os.Getenv(EnvID), 0, EnvPort)
	if err != nil {
		return p, err
	}
	if p.socket, err = net.Dial("tcp", os.Getenv(EnvPort)); err != nil {
		return p, fmt.Errorf("pmi: no launcher at %s, which is %.64q: %w%s", EnvPort, os.Getenv(EnvPort), err, remedy(EnvPort))
	}
	p.lines = boot.NewLineReader(p.socket)
	if err := p.introduce(id); err != nil {
		p.socket.Close()
		return p, fmt.Errorf("pmi: launcher at %s: %w", EnvPort, err)
	}
	return p, p.check()
}

// introduce names the process to the launcher and learns rank and size.
func (p *place) introduce(id int) error {
	hello, err := Append(nil, question("initack", "pmiid", strconv.Itoa(id)))
	if err != nil {
		return err
	}
	if _, err := p.socket.Write(hello); err != nil {
		return err
	}
	rank, size := -1, 0
	for _, key := range []string{"", "size", "rank", "debug"} {
		line, err := p.lines.Next()
		if err != nil {
			return err
		}
		m, err := Parse(line)
		switch {
		case err != nil:
		case key == "":
			err = checkAnswer(m, "initack", "initack")
		case m.Cmd != "set":
			err = fmt.Errorf("%q, where it has to set %s", m.Cmd, key)
		case m.Get("rank") != "":
			rank, err = m.number("rank", 0)
		case m.Get("size") != "":
			size, err = m.number("size", 1)
		}
		if err != nil {
			return err
		}
	}
	p.rank, p.size = rank, size
	return nil
}

func (p *place) check() error {
	if p.rank < 0 || p.rank >= p.size {
		p.socket.Close()
		return fmt.Errorf("pmi: the launcher says that this is rank %d of %d", p.rank, p.size)
	}
	return nil
}

func envNumber(name string, low int) (int, error) {
	return number(name, os.Getenv(name), low, EnvFD)
}

// number reads a variable. It is read because the one called cause is set.
func number(name, s string, low int, cause string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > 1<<30 {
		return 0, fmt.Errorf("pmi: %s is %.32q: want a number of at least %d%s", name, s, low, remedy(cause))
	}
	return n, nil
}

// remedy says what to do about a variable that makes no sense.
func remedy(variable string) string {
	return "; start the program with xrun or mpiexec, or without any " + variable + " to run it alone"
}
