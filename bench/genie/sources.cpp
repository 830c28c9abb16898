// Reads the files of data sets, and generates small ones.
#include "sources.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <stdexcept>

namespace pgwarp::bench::genie
{

namespace
{

constexpr std::size_t quick_rows = 2000;

std::vector<std::uint8_t> read_bytes(const std::string& path)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

// The records of a file without their heads, an int32 each.
std::vector<std::uint8_t> read_bvecs(const std::string& path, std::size_t record)
{
    const std::vector<std::uint8_t> bytes = read_bytes(path);
    std::vector<std::uint8_t> rows;
    rows.reserve(bytes.size());
    for (std::size_t at = 4; at + record <= bytes.size(); at += record + 4)
        rows.insert(rows.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at + record));
    return rows;
}

// Rows in clusters of a hundred.
std::vector<std::uint8_t> generated_vectors(std::size_t rows, std::size_t dimensions, unsigned seed)
{
    std::mt19937 centres(7);
    std::vector<int> centre(quick_rows / 100 * dimensions);
    for (int& value : centre) value = static_cast<int>(centres() % 200);
    std::mt19937 random(seed);
    std::vector<std::uint8_t> out(rows * dimensions);
    for (std::size_t row = 0; row < rows; ++row) {
        const int* from = centre.data() + random() % (quick_rows / 100) * dimensions;
        for (std::size_t d = 0; d < dimensions; ++d)
            out[row * dimensions + d] = static_cast<std::uint8_t>(from[d] + static_cast<int>(random() % 40));
    }
    return out;
}

// Words of a vocabulary of 500, the first of which are frequent.
std::vector<std::string> generated_texts(std::size_t most_characters)
{
    std::mt19937 random(3);
    std::vector<std::string> words(500);
    for (std::string& word : words)
        for (std::size_t i = 3 + random() % 6; i > 0; --i) word += static_cast<char>('a' + random() % 26);
    std::vector<std::string> texts(quick_rows);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::size_t length = i % 8 == 0 ? 40 : 20 + random() % (most_characters - 20);
        while (texts[i].size() < length) texts[i] += words[random() % (1 + random() % words.size())] + " ";
        texts[i].resize(length);
    }
    return texts;
}

std::vector<std::vector<std::string>> generated_adult()
{
    std::mt19937 random(5);
    std::vector<std::vector<std::string>> rows(quick_rows);
    for (auto& row : rows)
        for (int a = 0; a < 14; ++a) row.push_back(std::to_string(random() % (1 + random() % 90)));
    return rows;
}

}  // namespace

bool Sources::has(const std::string& name) const
{
    if (quick()) return true;
    const auto exists = [&](const char* file) { return std::filesystem::exists(path(file)); };
    if (name == "sift") return exists("base.u8") && (exists("query.bvecs") || exists("query.u8"));
    if (name == "fashion") return exists("fashion-base.u8") && exists("fashion-query.u8");
    if (name == "tweets") return exists("tweets.txt");
    if (name == "adult") return exists("adult.data");
    return exists((name + ".tsv").c_str());
}

ByteVectors Sources::vectors(const std::string& name, std::size_t most_queries) const
{
    ByteVectors vectors;
    vectors.dimensions = quick() ? 16 : name == "sift" ? 128 : 784;
    if (quick()) {
        vectors.base = generated_vectors(quick_rows, vectors.dimensions, 1);
        vectors.queries = generated_vectors(100, vectors.dimensions, 2);
    } else if (name == "sift") {
        vectors.base = read_bytes(path("base.u8"));
        vectors.queries = std::filesystem::exists(path("query.u8"))
                              ? read_bytes(path("query.u8"))
                              : read_bvecs(path("query.bvecs"), vectors.dimensions);
    } else {
        vectors.base = read_bytes(path(name + "-base.u8"));
        vectors.queries = read_bytes(path(name + "-query.u8"));
    }
    vectors.queries.resize(std::min(vectors.asked(), most_queries) * vectors.dimensions);
    return vectors;
}

std::vector<std::string> Sources::texts(const std::string& name) const
{
    if (quick()) return generated_texts(name == "proteins" ? 300 : 90);
    const std::string file_name = path(name + (name == "tweets" ? ".txt" : ".tsv"));
    std::ifstream file(file_name);
    if (!file) throw std::runtime_error("cannot read " + file_name);
    std::vector<std::string> texts;
    for (std::string line; std::getline(file, line);) texts.push_back(line.substr(line.rfind('\t') + 1));
    return texts;
}

std::vector<std::vector<std::string>> Sources::adult() const
{
    if (quick()) return generated_adult();
    std::ifstream file(path("adult.data"));
    if (!file) throw std::runtime_error("cannot read " + path("adult.data"));
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(file, line);) {
        std::vector<std::string> fields;
        std::stringstream stream(line);
        for (std::string field; std::getline(stream, field, ',');)
            fields.push_back(field.substr(std::min(field.size(), field.find_first_not_of(' '))));
        if (fields.size() > 14) rows.push_back(std::move(fields));
    }
    return rows;
}

}  // namespace pgwarp::bench::genie
