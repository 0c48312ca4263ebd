package cli

import (
	"context"

	"github.com/kappactl/kappactl/internal/pg"
)

func runDev(context.Context, devOptions) error                                           { return nil }
func runVerify(context.Context, verifyOptions) error                                     { return nil }
func runServe(context.Context, serveOptions) error                                       { return nil }
func withStack(context.Context, devOptions, func(context.Context, *running) error) error { return nil }

type running struct {
	config string
	pool   *pg.Pool
}
