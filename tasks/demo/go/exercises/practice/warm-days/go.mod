module warmdays

go 1.18
