package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Digests say what each hook does without saying it, by name: agents compare them, and addresses and arguments stay with the agent.
func Digests(hooks []Hook) map[string]string {
	out := make(map[string]string, len(hooks))
	for _, h := range hooks {
		// Marshal fails for no value of these types.
		text, _ := json.Marshal(struct {
			On      []job.HookEvent
			Jobs    []string
			Command []string
			URL     string
			Signed  bool
			Timeout time.Duration
		}{slices.Sorted(slices.Values(h.On)), slices.Sorted(slices.Values(h.Jobs)), h.Command, h.URL, h.Secret != nil, h.Timeout})
		sum := sha256.Sum256(text)
		out[h.Name] = hex.EncodeToString(sum[:6])
	}
	return out
}

// Differences says where the hooks of agents are not the same, one phrase a hook; nil when they are. The digests of each agent are given
// by its name for people.
func Differences(agents map[string]map[string]string) []string {
	names := map[string]bool{}
	for _, hooks := range agents {
		for name := range hooks {
			names[name] = true
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var with, without []string
		kinds := map[string]bool{}
		for _, agent := range slices.Sorted(maps.Keys(agents)) {
			digest, has := agents[agent][name]
			if !has {
				without = append(without, agent)
				continue
			}
			with = append(with, agent)
			kinds[digest] = true
		}
		switch {
		case len(without) > 0:
			out = append(out, fmt.Sprintf("%s is missing on %s", name, strings.Join(without, ", ")))
		case len(kinds) > 1:
			out = append(out, fmt.Sprintf("%s is not the same on %s", name, strings.Join(with, ", ")))
		}
	}
	return out
}
