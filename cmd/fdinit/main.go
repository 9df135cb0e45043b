package main

import (
	"fmt"
	"os"

	"github.com/fdinit/fdinit/internal/freestanding"
	"github.com/sirupsen/logrus"
)

func main() {
	o := freestanding.Result()
	logrus.Errorf("%+v", o)
	fmt.Println(o)
	os.Exit(125)
}
