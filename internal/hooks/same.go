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

// Digests returns a digest of each hook's settings by name. Agents compare them, so that URLs and arguments never leave
// the agent.
func Digests(hooks []Hook) map[string]string {
	out := make(map[string]string, len(hooks))
	for _, h := range hooks {
		// Marshal cannot fail for these types.
		text, _ := json.Marshal(struct {
			On      []job.HookEvent
			Jobs    []string
			Command []string
			URL     string
			Signed  bool
			Timeout time.Duration
		}{
			slices.Sorted(slices.Values(h.On)), slices.Sorted(slices.Values(h.Jobs)), h.Command, h.URL, h.Secret != nil,
			h.Timeout,
		})
		sum := sha256.Sum256(text)
		out[h.Name] = hex.EncodeToString(sum[:6])
	}
	return out
}

// Differences lists the hooks that differ between agents, one phrase per hook; nil if there are none. agents maps an
// agent's display name to its digests.
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
			out = append(out, fmt.Sprintf("%s differs on %s", name, strings.Join(with, ", ")))
		}
	}
	return out
}
