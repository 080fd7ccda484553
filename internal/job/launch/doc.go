// Package launch starts the ranks of a job on this host, in the hosts of a
// testbed or on other machines, and ends them; cmd/xrun is its command line.
//
// One process per host, the agent, is between the controller (Run) and the
// ranks. It is the same program, started with AgentArg as its only argument:
// as a plain child, inside a namespace, or by a launcher such as ssh. The two
// speak JSON lines over the agent's standard input and output (wire.go); a rank
// speaks the protocol of internal/job/boot with its agent, over a socket that it
// inherits, and the agent passes it on. Programs of other MPIs speak PMI over
// the same socket, which the agent translates (conversation.go).
//
//	xrun (controller) --stdin/stdout--> agent --socketpair, pipes--> rank
//	                  --ssh...--------> agent --...----------------> rank
//
// Nothing outlives the job, whichever process is killed first:
//   - a rank: the agent reports it and the controller ends the job, or, if the
//     others are to go on (Config.KeepGoing), lets them know;
//   - an agent: the kernel kills its ranks (PR_SET_PDEATHSIG) and the
//     controller, seeing the end of its output, ends the job;
//   - the controller: the agents see the end of their input and kill their
//     ranks, and the janitor of internal/job/testbed removes the namespaces;
//   - what the ranks have started themselves, in sessions of their own even, is
//     found by the name of the job in its environment and killed.
//
// Where ranks are on several hosts and no device is named, the controller first asks
// each agent for the device that its host reaches the others through (route.go), and
// settles on AF_XDP or kernel UDP for all when it has heard of all.
//
// Ranks per host: any number. Over AF_XDP those of one host share a queue of its
// NIC (share.go): the agent opens it and passes descriptors on, so the ranks need
// no privileges. A testbed can also give each rank a NIC, by giving it a
// namespace of its own.
package launch
