package cli

import (
	"context"
	"log/slog"

	"github.com/kappactl/kappactl/internal/config"
)

func (a *app) host(ctx context.Context, s config.Settings, log *slog.Logger, ready func(http string)) error {
	ready(s.HTTP)
	<-ctx.Done()
	return nil
}
