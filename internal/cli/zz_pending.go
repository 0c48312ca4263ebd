package cli

import "context"

func runVerify(context.Context, verifyOptions) error { return nil }
func runServe(context.Context, serveOptions) error   { return nil }
