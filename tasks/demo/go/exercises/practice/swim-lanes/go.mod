module swimlanes

go 1.18
