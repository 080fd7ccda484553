package launch

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/boot/pmi"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// endTimeout is how long the controller waits for agents to end what they were
// told to end, before it kills them.
const endTimeout = 10 * time.Second

// Run runs a job to its end. It returns nil when all ranks ended with status 0
// (and, if they were ranks of MPI, in good order), else why the job failed:
// the first cause, a *RankError, *AbortError, *StartError, *TimeoutError,
// *HostError or *ConfigError. ExitCode makes an exit status of it.
func Run(c Config) (err error) {
	m, err := thisMachine()
	if err != nil {
		return err
	}
	p, tb, err := prepare(c, m)
	if err != nil {
		return explain(err)
	}
	if tb != nil {
		defer func() { err = errors.Join(err, tb.Close()) }()
	}
	files, err := openOutputFiles(c, p.hostNames()[:p.users()])
	if err != nil {
		return err
	}
	if c.Notice != nil && p.notice != "" && !p.routed {
		fmt.Fprintf(c.Notice, "%s%s\n", p.notice, c.encrypted())
	}
	j := newJob(c, p, files)
	j.run(tb)
	if c.Report != nil {
		c.Report(j.records())
	}
	if slices.ContainsFunc(p.agents, func(a agentPlan) bool { return !p.remote || c.here(a.hostName) }) {
		j.fail(killMarked(j.name, allHosts)) // what a killed agent has left
	}
	return cmp.Or(j.failure, j.borne)
}

// prepare makes the plan, and the testbed if it has one.
func prepare(c Config, m machine) (*plan, *testbed.Testbed, error) {
	p, err := makePlan(c, m)
	if err != nil || p.testbed == nil {
		return p, nil, err
	}
	tb, err := testbed.New(*p.testbed)
	if errors.Is(err, testbed.ErrPermission) {
		m.root = false // in a container, root by name only
		return prepare(c, m)
	}
	if err != nil {
		return nil, nil, err
	}
	p.notice += fmt.Sprintf(" (%s, MTU %d)", joinedBy(tb.Switch), tb.MTU)
	return p, tb, nil
}

func joinedBy(s testbed.Switch) string {
	if s == testbed.Cable {
		return "a cable"
	}
	return s.String() + " switch"
}

// thisMachine finds out what plans depend on.
func thisMachine() (machine, error) {
	m := machine{root: os.Geteuid() == 0, xdp: probeXDP()}
	allowed, err1 := AllowedCPUs()
	name, err2 := os.Hostname()
	m.cpus, m.name = len(allowed), name
	return m, errors.Join(err1, err2)
}

// probeXDP says why there can be no AF_XDP sockets.
func probeXDP() error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.EAFNOSUPPORT):
		return errors.New("the kernel is built without CONFIG_XDP_SOCKETS")
	case errors.Is(err, unix.EPERM):
		return errors.New("AF_XDP sockets need CAP_NET_RAW")
	}
	return fmt.Errorf("AF_XDP socket: %w", err)
}

// job is the controller of a job. One goroutine runs it.
type job struct {
	config    Config
	plan      *plan
	name      string
	key       uint64
	secret    []byte // nil: nothing is encrypted
	links     []*link
	rankTable *rankTable
	printer   *printer
	events    chan event

	failure   error // the first cause
	borne     error // the first cause that the others go on in spite of
	ending    bool  // the ranks were told to end
	finishing bool  // the agents were told to leave
	killed    bool  // the agents were killed, because endTimeout is over

	abandoned  bool // what they have said last finds no reader
	suspending bool // this program stops when the ranks are
	interrupt  unix.Signal
	timer      *time.Timer // start-up, and then the end
	limit      <-chan time.Time
	began      time.Time
	asked      *question // what the ranks do; nil: not asked
	told       bool      // why the job fails was known when they were asked
	stdin      *stdinReader
	readers    readers
	left       map[int][]byte // records by rank
}

func newJob(c Config, p *plan, files *outputFiles) *job {
	j := &job{
		config: c, plan: p,
		name: rand.Text(), key: boot.NewKey(), secret: c.newSecret(),
		rankTable: newRankTable(p.users(), p.ghosts),
		left:      map[int][]byte{},
		began:     time.Now(),
		printer:   newPrinter(c, p.users(), p.ghosts, files),
		events:    make(chan event),
		timer:     time.NewTimer(time.Hour),
		stdin:     newStdinReader(c.Stdin),
		readers:   c.newReaders(p.users()),
	}
	j.timer.Stop()
	if c.Timeout > 0 {
		j.limit = time.After(c.Timeout)
	}
	for rank, name := range p.hostNames() {
		j.rankTable.ranks[rank].host = name
	}
	return j
}

// run returns when all agents are gone.
func (j *job) run(tb *testbed.Testbed) {
	for _, a := range j.plan.agents {
		l, err := j.config.startAgent(j.plan, a, tb, j.printer, j.events)
		if err != nil {
			j.fail(&HostError{a.hostName, fmt.Errorf("cannot start the agent: %w", explain(err))})
			break
		}
		j.links = append(j.links, l)
	}
	j.armStart()
	for j.step() {
	}
	j.stdin.close()
	j.fail(j.printer.close(j.killed))
}

// step handles one event. It reports whether there are more to come.
func (j *job) step() (more bool) {
	if j.failure != nil {
		j.endAfterAsking()
	}
	if j.rankTable.alive == 0 {
		j.finish()
	}
	if j.abandoned || !slices.ContainsFunc(j.links, func(l *link) bool { return !l.gone }) {
		return false
	}
	j.suspend()
	select {
	case e := <-j.events:
		j.handle(e)
	case data := <-j.stdin.data:
		j.broadcast(order{Op: opStdin, Data: data})
	case s := <-j.config.Signals:
		j.signal(s)
	case <-j.timer.C:
		j.timeout()
	case <-j.asked.over():
		j.answered()
	case <-j.limit:
		j.fail(&LimitError{j.config.Timeout})
	}
	return true
}

// fail notes why the job fails, unless it does already.
func (j *job) fail(err error) {
	if j.failure == nil && err != nil {
		j.failure = err
	}
}

// blame notes an unexpected death. Ranks that noticed it may have been heard
// of before: it is the cause of what they did.
func (j *job) blame(err error) {
	if mayFollow(j.failure) {
		j.failure = err
	}
	if mayFollow(j.borne) {
		j.borne = err
	}
}

// bear notes that ranks have ended, and why if that is a failure. The others are
// told, and go on if they may.
func (j *job) bear(err error, ranks ...int) {
	switch {
	case !j.config.KeepGoing || !j.rankTable.begun:
		j.fail(err)
		return
	case j.borne == nil:
		j.borne = err
	}
	if len(ranks) > 0 && !j.ending {
		j.broadcast(order{Op: opEnded, Ranks: ranks})
	}
}

// end tells the ranks to end, once.
func (j *job) end() {
	if j.ending {
		return
	}
	j.ending = true
	j.broadcast(order{Op: opKill})
	for _, l := range j.links {
		if !l.ready { // it cannot have ranks, and may never hear us
			l.closeInput()
			l.kill()
		}
	}
	j.timer.Reset(endTimeout)
}

// finish tells the agents to leave, once.
func (j *job) finish() {
	if j.finishing || j.killed {
		return
	}
	j.finishing = true
	j.broadcast(order{Op: opFinish})
	j.timer.Reset(endTimeout)
}

func (j *job) broadcast(o order) {
	for _, l := range j.links {
		l.out.post(o)
	}
}

func (j *job) handle(e event) {
	switch {
	case e.ended:
		j.lost(e.from)
	case e.err != nil:
		j.fail(&HostError{e.from.plan.hostName, e.err})
	default:
		j.handleReport(e.from, e.report)
	}
}

// lost notes the end of an agent's process, and of its ranks with it.
func (j *job) lost(l *link) {
	l.gone = true
	defer j.forget(l.plan.ranks...)
	var ranks []int
	for _, r := range l.plan.ranks {
		if j.rankTable.exit(r.Rank) {
			ranks = append(ranks, r.Rank)
			j.feed(j.readers.gone(r.Rank))
		}
	}
	if !l.bye {
		err := &HostError{l.plan.hostName, l.lostError(j.plan.remote && !j.config.here(l.plan.hostName))}
		for _, rank := range ranks {
			j.rankTable.ranks[rank].end = err
		}
		if !l.told {
			j.blame(err)
		}
		j.bear(err, ranks...)
	}
	j.checkDeserter()
}

func (j *job) handleReport(l *link, r report) {
	switch r.Op {
	case opReady:
		if j.plan.routed {
			l.out.post(order{Op: opRoute, Peers: j.peers(l), IPv6: j.plan.ipv6, Device: j.plan.device})
			break
		}
		l.ready = true
		j.start(l)
	case opDevice:
		j.found(l, *r.Found)
	case opStarted:
		j.rankTable.ranks[r.Rank].pid = r.PID
	case opFailed:
		j.fail(&StartError{l.plan.hostName, j.config.programs()[j.plan.appOf(r.Rank)].Program, r.NotFound, r.Why})
		l.closeInput() // it leaves, with the ranks that it could start
	case opBoot:
		j.request(r)
	case opStdinRoom:
		j.feed(j.readers.room(r.Rank))
	case opStdinShut:
		j.feed(j.readers.gone(r.Rank))
	case opStopped:
		l.stops--
	case opRecord:
		j.left[r.Rank] = append(j.left[r.Rank], r.Data...)
	case opDoing:
		j.answer(r)
	case opNotice:
		if j.config.Notice != nil {
			fmt.Fprintf(j.config.Notice, "%s\n", r.Why)
		}
	case opExit:
		j.exit(r)
	case opBye:
		l.bye = true
		l.closeInput()
	}
}

// allReady reports whether every agent was told to start its ranks.
func (j *job) allReady() bool {
	return !slices.ContainsFunc(j.links, func(l *link) bool { return !l.ready })
}

// start orders an agent to start its ranks.
func (j *job) start(l *link) {
	dir, err := j.config.dir()
	j.fail(err)
	if j.failure != nil {
		l.closeInput()
		return
	}
	l.out.post(order{Op: opStart, Start: &startOrder{
		Version: wireVersion, Host: l.plan.host, jobSize: jobSize{j.plan.users(), j.plan.ghosts},
		JobKey: j.key, Secret: j.secret, Job: j.name, Fabric: j.plan.fabric, Device: cmp.Or(j.plan.device, l.found.Device), Shared: j.plan.shared, Record: j.config.Report != nil, RecordEvents: j.config.RecordEvents, User: j.config.User,
		Dir: dir, Apps: j.config.programs(), Env: j.plan.env(j.config), StdinTo: j.config.StdinTo, Merge: j.config.MergeOutput,
		Bind: l.plan.bind, Processors: j.config.Processors, Map: j.config.Map, ReportBindings: j.config.ReportBindings, Mapping: pmi.FormatMapping(j.plan.hosts()),
		Ranks: l.plan.ranks, Neighbors: j.plan.neighbors(l.plan),
		Steered: j.plan.steered,
	}})
	for _, r := range l.plan.ranks {
		j.feed(j.readers.room(r.Rank))
	}
	if !j.allReady() {
		return
	}
	j.timer.Stop()
	if j.rankTable.fenced > 0 && !j.rankTable.begun {
		j.armStart()
	}
}

// feed asks for the next piece of the standard input if there is room for it.
func (j *job) feed(room bool) {
	if room {
		j.stdin.more()
	}
}

// request handles what a rank asks.
func (j *job) request(r report) {
	if r.Request == nil {
		j.fail(&HostError{j.rankTable.ranks[r.Rank].host, fmt.Errorf("rank %d: %s", r.Rank, r.Why)})
		return
	}
	if r.Request.Op == boot.OpAbort {
		j.fail(&AbortError{r.Rank, j.rankTable.ranks[r.Rank].host, r.Request.Code, r.Request.Why})
		return
	}
	if r.Request.Op == boot.OpHello {
		if r.PMI && j.plan.ghosts > 0 {
			j.fail(configErrorf("rank %d is a program of another MPI (it speaks PMI), whose windows ghosts cannot serve: leave --ghosts away, or build it with xwarp", r.Rank))
			return
		}
		if other, found := j.rankTable.stranger(r.Rank, r.PMI); found {
			j.fail(j.mixed(r.Rank, other))
			return
		}
	}
	values, complete, err := j.rankTable.request(r.Rank, *r.Request)
	switch {
	case err != nil:
		j.fail(err)
	case complete:
		j.timer.Stop()
		j.broadcast(order{Op: opFenced, Values: values})
	case r.Request.Op == boot.OpFence && j.rankTable.fenced == 1 && !j.rankTable.begun:
		j.armStart()
	}
	j.checkDeserter()
}

func (j *job) exit(r report) {
	defer j.forget(rankPlan{Rank: r.Rank})
	s := &j.rankTable.ranks[r.Rank]
	if !j.rankTable.exit(r.Rank) || r.Rank >= j.plan.users() && j.finishing && (r.Told || r.Signal == 0 && r.Status == 0) {
		return // a ghost ends with the last rank
	}
	j.feed(j.readers.gone(r.Rank))
	e := &RankError{
		Rank: r.Rank, PID: s.pid, Host: s.host, Ghost: r.Rank >= j.plan.users(),
		Status: r.Status, Signal: unix.Signal(r.Signal), Core: r.Core, Interrupt: j.interrupt,
	}
	switch {
	case e.Ghost:
		e.Rank -= j.plan.users()
		e.Why = "before the ranks"
	case s.joined && !s.finalized:
		e.Why = "without Finalize"
	}
	var err error
	if e.Status != 0 || e.Signal != 0 || e.Why != "" {
		err = e
	}
	s.end = err
	if !r.Told && err != nil && !mayFollow(err) {
		j.blame(err)
	}
	if e.Ghost {
		j.loseGhost(e, r.Rank)
		return
	}
	j.bear(err, r.Rank)
	j.checkDeserter()
}

// checkDeserter fails the job when ranks wait for one that has ended.
func (j *job) checkDeserter() {
	if rank, ok := j.rankTable.deserter(); ok {
		s := j.rankTable.ranks[rank]
		j.fail(s.end)
		j.fail(&RankError{Rank: rank, PID: s.pid, Host: s.host, Why: "while others wait for it"})
	}
}

func (j *job) signal(s os.Signal) {
	sig, ok := s.(unix.Signal)
	if !ok {
		return
	}
	ends := sig == unix.SIGINT || sig == unix.SIGTERM
	if j.killed {
		return
	}
	if sig == unix.SIGQUIT {
		j.ask()
		return
	}
	if ends && j.interrupt != 0 {
		j.fail(ErrKilled)
		j.end()
		for _, l := range j.links {
			l.kill()
		}
		j.killed = true
		j.timer.Reset(killGrace)
		return
	}
	if ends || sig == unix.SIGHUP {
		j.interrupt = sig
		if !j.allReady() { // some would miss it
			j.fail(&InterruptError{sig})
			return
		}
	}
	j.broadcast(order{Op: opSignal, Signal: int(sig)})
	if sig == unix.SIGTSTP && j.config.Suspend != nil {
		j.suspending = true
		for _, l := range j.links {
			l.stops++
		}
	}
}

// suspend stops this program once all ranks there are have been stopped, and not
// before: they would go on without it.
func (j *job) suspend() {
	if j.suspending && !slices.ContainsFunc(j.links, func(l *link) bool { return l.ready && !l.gone && l.stops > 0 }) {
		j.suspending = false
		j.config.Suspend()
	}
}

// armStart starts the time that hosts and ranks have.
func (j *job) armStart() {
	if !j.ending && j.config.StartTimeout >= 0 {
		j.timer.Reset(cmp.Or(j.config.StartTimeout, DefaultStartTimeout))
	}
}

func (j *job) timeout() {
	if j.killed {
		j.abandoned = true
		return
	}
	if j.ending || j.finishing {
		for _, l := range j.links {
			if !l.gone {
				j.fail(&HostError{l.plan.hostName, fmt.Errorf("its ranks do not end")})
				l.kill()
			}
		}
		return
	}
	e := &TimeoutError{After: cmp.Or(j.config.StartTimeout, DefaultStartTimeout)}
	for _, l := range j.links {
		if !l.ready {
			e.Hosts = append(e.Hosts, l.plan.hostName)
		}
	}
	e.Missing, e.Arrived = j.rankTable.missing(), j.rankTable.fenced
	j.fail(e)
}
