module github.com/carillon-im/carillon/sdk/go

go 1.24
