# Everything the libraries link. rehearseConfig.cmake.in repeats the list for users of the installed package.
find_package(LibTorch REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS fiber)
find_package(fmt REQUIRED)
find_package(Libdw REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
