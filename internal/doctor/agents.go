package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/hooks"
)

// SameHooks is the advice for agents whose hooks differ.
const SameHooks = "give every agent the same agent.hooks and agent.webhooks, and restart those that lack them"

// HookDifferences returns where living agents have different hooks, one phrase for each hook.
func HookDifferences(living []agent.Living) []string {
	of := map[string]map[string]string{}
	for _, one := range living {
		if one.Hooks != nil {
			of[one.ID] = one.Hooks
		}
	}
	return hooks.Differences(of)
}

// agents counts those that are alive, and compares their hooks.
func (e *examination) agents(ctx context.Context) {
	living, err := agent.Roster(ctx, e.pool, agent.AliveWithin)
	switch {
	case err != nil:
		e.failed(ctx, "agents", err)
	case len(living) == 0:
		e.note("agents", Failed, "kappactl serve", "none is alive: nothing replays, follows the topics or promotes")
	default:
		e.note("agents", OK, "", "%d alive", len(living))
		e.hooks(living)
		e.programs(living)
	}
}

// programs notes which programs of jobs the agents run, when one of them runs any.
func (e *examination) programs(living []agent.Living) {
	var patterns []string
	n := 0
	for _, one := range living {
		if len(one.Programs) > 0 {
			n++
		}
		patterns = append(patterns, one.Programs...)
	}
	if n == 0 {
		return
	}
	slices.Sort(patterns)
	e.note("programs", OK, "", "%d of %d agents run %s", n, len(living), strings.Join(slices.Compact(patterns), ", "))
}

// hooks notes whether all agents tell, and ask, the same programs and addresses.
func (e *examination) hooks(living []agent.Living) {
	const check = "hooks"
	names := map[string]string{}
	for _, one := range living {
		maps.Copy(names, one.Hooks)
	}
	switch apart := HookDifferences(living); {
	case len(apart) > 0:
		e.note(check, Warning, SameHooks, "agents have different ones, so it depends on the agent who is asked and told: %s",
			strings.Join(apart, "; "))
	case len(names) == 0:
		e.note(check, OK, "", "none")
	default:
		e.note(check, OK, "", "%s, the same on every agent", strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
}
