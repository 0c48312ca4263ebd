package cli

import (
	"context"
	"log/slog"
	"math/rand/v2"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/hooks"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess"
)

// hooks makes the service that tells the hooks of the settings. Its numbers come from a source of its own: random is
// the controller's.
func (a *app) hooks(s config.Settings, pool *pg.Pool, id string, log *slog.Logger, random *rand.Rand) *hooks.Service {
	return hooks.New(hooks.Deps{
		Pool: pool, Agent: id, Note: reprocess.NewStore(pool).NoteHook, Env: a.sys.Env, Log: log, Now: a.sys.Now,
		Rand: rand.New(rand.NewPCG(random.Uint64(), random.Uint64())), //nolint:gosec // jitter
	}, hooks.Config{Hooks: hooksOf(s)})
}

// hooksOf are the hooks of the settings.
func hooksOf(s config.Settings) []hooks.Hook {
	all := make([]hooks.Hook, 0, len(s.Hooks))
	for _, h := range s.Hooks {
		one := hooks.Hook{Name: h.Name, On: h.On, Jobs: h.Jobs, Command: h.Command, URL: h.URL, Timeout: h.Timeout}
		if !h.Secret.IsZero() {
			one.Secret = func(ctx context.Context) (string, error) {
				secret, err := h.Secret.Read(ctx)
				return string(secret), err
			}
		}
		all = append(all, one)
	}
	return all
}
