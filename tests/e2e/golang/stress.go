// SPDX-License-Identifier: MIT
// Goroutines whose stacks grow, panic and recover while the collector runs all the time. Prints how many results were wrong.
package main

import (
	"fmt"
	"runtime/debug"
	"sync"
)

//go:noinline
func grow(n int, s []byte) (r int) {
	defer func() {
		if e := recover(); e != nil {
			r = e.(int)
		}
	}()
	var room [200]byte
	room[n%200] = byte(n)
	t := append([]byte(nil), s...)
	if n == 0 {
		panic(len(t))
	}
	return grow(n-1, t) + int(room[n%200]) - n%256
}

func main() {
	debug.SetGCPercent(1)
	var wg sync.WaitGroup
	bad := 0
	var mu sync.Mutex
	for g := 0; g < 8; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			for i := 0; i < 300; i++ {
				got := make(chan int)
				go func() { got <- grow(i%60, make([]byte, 64+g)) }()
				if r := <-got; r != 64+g {
					mu.Lock()
					bad++
					mu.Unlock()
				}
			}
		}(g)
	}
	wg.Wait()
	fmt.Println("bad", bad)
}
