package checks

import (
	"testing"

	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) { leaktest.Main(func() int { return pgtest.Run(m) }) }
