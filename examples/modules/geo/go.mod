module carillon.example/geo

go 1.24
