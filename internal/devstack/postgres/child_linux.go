package postgres

import "syscall"

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = quit }
