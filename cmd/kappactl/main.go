// Command kappactl ships new stream-processing code beside the old one: see internal/cli for its commands.
package main

import (
	"os"

	"github.com/kappactl/kappactl/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
