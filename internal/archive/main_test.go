package archive_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/leaktest"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/s3test"
)

func TestMain(m *testing.M) {
	leaktest.Main(func() int {
		defer kafkatest.Stop()
		defer s3test.Stop()
		return pgtest.Run(m)
	})
}
