// Package s3test runs an S3 gateway for tests: versitygw, which checks signatures as AWS does and keeps buckets as
// folders, and a proxy before it that fails requests.
package s3test
