// Package programs runs the programs of jobs of engine: program. Agents that allow a program share its instances by
// lease; each instance is a process with the positions of its share of the partitions, which it moves by the SQL
// function kappactl.advance in the transactions that write its results, or by committing to the version's consumer
// group.
//
// A process is fenced by the claim under which it was started: whoever starts another one for the same positions gives
// them a new claim, and advance refuses the older one. So it does not matter whether a process that an agent has lost
// still runs.
package programs
