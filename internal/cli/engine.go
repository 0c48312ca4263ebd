package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/programs"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// sqlOnly refuses a command that needs the query of a job whose engine has none.
func sqlOnly(name job.Name, e job.Engine, command, instead string) error {
	if e == job.SQL {
		return nil
	}
	return &job.Refusal{
		Code: job.ExitUsage,
		Cause: fmt.Sprintf("%s needs the query of the job, and %s is a job of engine: %s (docs/engines.md)", command, name,
			e),
		Next: instead,
	}
}

// noOracle refuses verify for a version whose engine has no query.
func (c *client) noOracle(ctx context.Context, ref job.Ref) error {
	spec, _, err := ledger.ReadSpec(ctx, c.pool, ref)
	if err != nil {
		return err
	}
	return sqlOnly(ref.Job, spec.Engine, "verify",
		fmt.Sprintf("kappactl diff %s V1 V2 compares two versions; checks in the job file guard the flip", ref.Job))
}

// comparableAtOffsets refuses a comparison of versions one of which does not stop at given offsets.
func (c *client) comparableAtOffsets(ctx context.Context, refs ...job.Ref) error {
	known := engines()
	for _, ref := range refs {
		spec, _, err := ledger.ReadSpec(ctx, c.pool, ref)
		if err != nil {
			return err
		}
		e, err := known.Of(spec)
		if err != nil {
			return err
		}
		if !ref.Adopted() && !e.Held(spec) {
			return &job.Refusal{
				Code:  job.ExitUsage,
				Cause: fmt.Sprintf("%s commits to its consumer group: it does not stop at given offsets, so its rows are never those of the same records", ref),
				Next:  "write program.commit: table (docs/programs.md), or compare the two tables in PostgreSQL",
			}
		}
	}
	return nil
}

// allowed refuses a program that no living agent runs.
func (c *client) allowed(ctx context.Context, spec *job.Spec) error {
	if spec.Program == nil {
		return nil
	}
	agents, err := agent.Roster(ctx, c.pool, agent.AliveWithin)
	if err != nil || len(agents) == 0 { // that none is alive is told elsewhere
		return err
	}
	command := spec.Program.Command[0]
	var patterns []string
	for _, one := range agents {
		if programs.Allows(one.Programs, command) {
			return nil
		}
		patterns = append(patterns, one.Programs...)
	}
	slices.Sort(patterns)
	those := "none allows any program"
	if patterns = slices.Compact(patterns); len(patterns) > 0 {
		those = "they allow " + strings.Join(patterns, ", ")
	}
	return &job.Refusal{
		Code:  job.ExitUsage,
		Cause: fmt.Sprintf("no agent runs %s: %s", command, those),
		Next:  "add it to agent.programs in the settings of agents that have it, and start them again (docs/programs.md)",
	}
}

// guarantees are what an engine cannot promise, for check and plan.
func guarantees(spec *job.Spec) []string {
	if spec.Program == nil {
		return nil
	}
	out := []string{"engine: program: results cannot be verified by one pass over the log, and dead letters are the program's own"}
	if spec.Program.Commit == job.CommitGroup {
		out = append(out, "commit: group: results are at least once, and versions are flipped within ready.max_lag_time "+
			"without being stopped at the same offsets: readers may see values go back")
		for _, c := range spec.Checks {
			if c.Diff != nil || job.Names(c.SQL, "live") || job.Names(c.SQL, "previous") {
				out = append(out, fmt.Sprintf("commit: group: check %q compares two versions and will have no answer", c.Name))
			}
		}
	}
	return out
}
