package batchlayer

import (
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) {
	leaktest.Main(func() int {
		defer kafkatest.Stop()
		return pgtest.Run(m)
	})
}
