// Writes generated embeddings (generated.h) for benchmarks of others: embedding_file ROWSxDIMENSIONS QUERIES FILE.
// The file has the rows and then the queries as float32, without a header.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>

#include "generated.h"

namespace
{

using pgwarp::bench::Matrix;

void append(std::ofstream& file, const Matrix<float>& rows)
{
    file.write(reinterpret_cast<const char*>(rows.values.data()),
               static_cast<std::streamsize>(rows.values.size() * sizeof(float)));
}

void write_file(const char* shape, const char* count, const char* path)
{
    std::size_t rows = 0;
    std::size_t columns = 0;
    const std::size_t queries = std::strtoul(count, nullptr, 10);
    if (std::sscanf(shape, "%zux%zu", &rows, &columns) != 2 || rows == 0 || columns == 0 || queries == 0) {
        throw std::runtime_error("usage: embedding_file ROWSxDIMENSIONS QUERIES FILE");
    }
    const pgwarp::bench::Generated made = pgwarp::bench::generate_embeddings(rows, columns, queries);
    std::ofstream file(path, std::ios::binary);
    append(file, made.base);
    append(file, made.queries);
    file.close();
    if (!file) throw std::runtime_error("could not write the file of embeddings");
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        if (argc != 4) throw std::runtime_error("usage: embedding_file ROWSxDIMENSIONS QUERIES FILE");
        write_file(argv[1], argv[2], argv[3]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
