// The data of the experiments: files of a folder (see bench/genie/run), or small generated stand-ins for a quick run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pgwarp::bench::genie
{

struct ByteVectors {
    std::size_t dimensions = 0;
    std::vector<std::uint8_t> base;     // [rows][dimensions]
    std::vector<std::uint8_t> queries;  // [asked][dimensions]
    std::size_t rows() const { return base.size() / dimensions; }
    std::size_t asked() const { return queries.size() / dimensions; }
    std::span<const std::uint8_t> row(std::size_t i) const
    {
        return std::span(base).subspan(i * dimensions, dimensions);
    }
    std::span<const std::uint8_t> query(std::size_t i) const
    {
        return std::span(queries).subspan(i * dimensions, dimensions);
    }
};

class Sources
{
public:
    // An empty folder: generated data.
    explicit Sources(std::string folder) : folder_(std::move(folder)) {}

    bool quick() const { return folder_.empty(); }
    // sift, fashion, titles, tweets, proteins, adult
    bool has(const std::string& name) const;
    // sift (128 bytes) or fashion (784 bytes). Throws std::runtime_error where a file is missing, like the others.
    ByteVectors vectors(const std::string& name, std::size_t most_queries) const;
    // titles, tweets or proteins, one a line; where lines have tabs, the last column.
    std::vector<std::string> texts(const std::string& name) const;
    // The census rows "Adult": 14 attributes of text.
    std::vector<std::vector<std::string>> adult() const;

private:
    std::string path(const std::string& file) const { return folder_ + "/" + file; }

    std::string folder_;
};

}  // namespace pgwarp::bench::genie
